// How a thread of the engine sleeps until an instant: by a timer that counts suspend.
#pragma once

#include "types/clock.hpp"

namespace dlock::engine {

// A condition variable would wait on a clock that stands still while the machine is suspended.
// Threads: wait() from one, the rest from any. Owns two file descriptors.
class BootTimer {
 public:
  BootTimer();
  ~BootTimer();
  BootTimer(const BootTimer&) = delete;
  BootTimer& operator=(const BootTimer&) = delete;

  // Goes off at `at`, and only then; Instant::max() is never. In the past: at once.
  void set(Instant at);

  // Ends the wait that is under way, or the next one.
  void wake() noexcept;

  // Until it goes off or is woken. May end early, so look at the clock.
  void wait() noexcept;

  // Wakes all there are: what the kernel does to timers that are due when it wakes up, for tests that move the clock.
  static void wake_all() noexcept;

 private:
  int timer_ = -1, listener_ = -1;
};

}  // namespace dlock::engine
