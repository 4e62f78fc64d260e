// How a waiter finds out that it waits in vain: how often it looks, when a cycle is believed, and who gives way. What a
// cycle is: deadlock.hpp.
#pragma once

#include "engine/backoff.hpp"
#include "engine/wait/deadlock.hpp"
#include "store/lock_table.hpp"
#include "store/waiter_table.hpp"
#include "types/clock.hpp"
#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <optional>
#include <string_view>

namespace dlock::engine {

// Looks for a cycle at intervals; one that is there twice in a row is a deadlock, and the youngest waiter in it gives
// way: each waiter only ever chooses itself, so that nobody has to tell anybody. The youngest may not see it, where a
// job in it waits on several threads; then the next one gives way when it has seen it ten times more, and so on.
// Threads: one.
class DeadlockDetector {
 public:
  // From now on it is worth looking: this waiter holds something, and its row says for what it waits.
  void begin() {
    if (next_ == Instant::max()) next_ = later(BootClock::now(), interval());
  }
  Instant next() const noexcept { return next_; }
  // Where what would be seen is not to be believed.
  void put_off() { next_ = later(BootClock::now(), jittered(interval())); }

  // Throws Error{deadlock}, and Failure. False: nothing to throw.
  bool look(store::LockTable& table, std::string_view actor, std::string_view owner, Deadline deadline) {
    auto cycle = cycle_of(table.waiting().chain(actor, owner, deadline), actor);
    next_ = later(BootClock::now(), jittered(interval()));
    looks_ = cycle && seen_ && cycle->same_as(*seen_) ? looks_ + 1 : 1;
    const int turn = cycle && !planted("deadlock_ends_all") ? cycle->younger_than(owner) : 0;
    if (cycle && looks_ >= (planted("deadlock_at_first_sight") ? 1 : 2) + 10 * turn)
      throw Error(Fault::deadlock, fmt::format("deadlock: {}; {}", cycle->in_words(),
                                               turn == 0 ? "the youngest waiter gives way"
                                                         : "a waiter gives way, since no younger one did"));
    seen_ = std::move(cycle);
    return false;
  }

 private:
  // A cycle is found after twice this at the latest, give or take a quarter.
  static Duration interval() noexcept {
    return std::chrono::milliseconds{planted("deadlock_search_slow") ? 8000 : 300};
  }
  Instant next_ = Instant::max();
  std::optional<Cycle> seen_{};
  int looks_ = 0;  // in a row that saw it
};

}  // namespace dlock::engine
