// Attempts at a name, made without standing in line.
#pragma once

#include "engine/busy_cache.hpp"
#include "engine/context.hpp"
#include "engine/grant_request.hpp"
#include "engine/lease/late_attempts.hpp"
#include "engine/lease/lingering.hpp"
#include "engine/patience.hpp"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace dlock::engine {

// Threads: any. Fails: Error. What an attempt may have been granted without an answer is noted in its request.
class Attempts {
 public:
  Attempts(Context& context, Lingering& lingering, LateAttempts& late_attempts) noexcept
      : context_(context), lingering_(lingering), late_attempts_(late_attempts) {}

  // Once, unless the row is only locked: then a little longer. Who tries again and again is answered by a read, which
  // costs less than an attempt in vain.
  std::shared_ptr<Lease> try_first(GrantRequest& request, const Patience& patience);
  // Asks once, until there is an answer. Empty: busy.
  std::shared_ptr<Lease> try_once(GrantRequest& request, Instant deadline, std::stop_token stop);
  // Out of patience, and the row could not be had. Empty: busy, since somebody holds it, or has its row locked. Where
  // it is neither, that is no answer: throws Error{timeout}, and says what is in the way.
  std::shared_ptr<Lease> look_into_lock(GrantRequest& request, const Patience& patience);

  // What is asked at `sent`, which the request has to outlive.
  store::AcquireRequest acquire_request(GrantRequest& request, Instant sent) const;
  // What an answer is worth that was asked for at `sent`; `again`: not for the first time. Empty: it is to be asked for
  // once more.
  std::optional<std::shared_ptr<Lease>> take_up(GrantRequest& request, const store::Granted& answer, Instant sent,
                                                bool again, const Deadline& bound);
  store::Availability look(GrantRequest& request, const Deadline& until) const;
  bool above_floor(Token token, const Deadline& deadline);
  // It was asked for in vain just now.
  void was_busy(const std::string& name) noexcept { busy_.note(name, BootClock::now()); }

 private:
  void start_over(GrantRequest& request, const Deadline& deadline);
  // What is in the way of one who could not have the row.
  store::Blocked blocked(GrantRequest& request, const Deadline& deadline);

  Context& context_;
  Lingering& lingering_;
  LateAttempts& late_attempts_;
  BusyCache busy_{};
};

}  // namespace dlock::engine
