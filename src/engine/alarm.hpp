// This file knows how a thread of the engine sleeps until an instant: by a timer that counts suspend.
#pragma once

#include "types/clock.hpp"

#include <mutex>

namespace dlock::engine {

// A condition variable would wait on a clock that stands still while the machine is suspended.
// Threads: wait() from one, the rest from any. Owns two file descriptors.
class Alarm {
 public:
  Alarm();
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Goes off at `at`, and only then; Instant::max() is never. In the past: at once.
  void set(Instant at);

  // Ends the wait that is under way, or the next one.
  void ring() noexcept;

  // Until it goes off or is rung. May end early, so look at the clock.
  void wait() noexcept;

  // Rings all there are: what the kernel does to timers that are due when it wakes up, for tests that move the clock.
  static void ring_all() noexcept;

 private:
  int timer_ = -1, bell_ = -1;
};

}  // namespace dlock::engine
