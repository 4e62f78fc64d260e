// How a release makes the next in line of this process the holder.
#pragma once

#include "engine/context.hpp"
#include "engine/lease/history_probe.hpp"
#include "engine/lease/late_attempts.hpp"
#include "engine/lease/release_request.hpp"

#include <cstdint>
#include <memory>

namespace dlock::engine {

// Threads: any.
class HandOver {
 public:
  HandOver(Context& context, HistoryProbe& history, LateAttempts& late_attempts) noexcept
      : context_(context), history_(history), late_attempts_(late_attempts) {}

  // Gives what is held to the head of the line in this process, so that it is never free in between. False: it is still
  // to be freed, unless an attempt to hand it over got no answer.
  bool hand_over(ReleaseRequest& request);

 private:
  std::uint32_t reserved_for(const Lease& held, const WaitQueues::WaiterPtr& waiter, Instant deadline);
  std::shared_ptr<Lease> pass_on(const std::shared_ptr<Lease>& held, const WaitQueues::WaiterPtr& waiter);

  Context& context_;
  HistoryProbe& history_;
  LateAttempts& late_attempts_;
};

}  // namespace dlock::engine
