// How a release makes the next in line of this process the holder.
#pragma once

#include "engine/context.hpp"
#include "engine/lease/history_probe.hpp"
#include "engine/lease/late_attempts.hpp"

#include <cstdint>
#include <memory>

namespace dlock::engine {

// Threads: any.
class HandOver {
 public:
  HandOver(Context& context, HistoryProbe& history, LateAttempts& late_attempts) noexcept
      : context_(context), history_(history), late_attempts_(late_attempts) {}

  // Gives what is held to the head of the line in this process, so that it is never free in between. False: it is still
  // to be freed. `in_doubt`: unless it was handed over without an answer. `yields`: others are to have their turn.
  // `unclaimed`: the new grant, where who waited has given up meanwhile; it is to be released.
  bool hand_over(const std::shared_ptr<Lease>& held, Instant deadline, bool& in_doubt, bool& yields,
                 std::shared_ptr<Lease>& unclaimed);

 private:
  std::uint32_t reserved_for(const Lease& held, const WaitQueues::WaiterPtr& waiter, Instant deadline);
  std::shared_ptr<Lease> pass_on(const std::shared_ptr<Lease>& held, const WaitQueues::WaiterPtr& waiter);

  Context& context_;
  HistoryProbe& history_;
  LateAttempts& late_attempts_;
};

}  // namespace dlock::engine
