// Waits for a descriptor on one thread until another one ends that.
#pragma once

#include "types/clock.hpp"

namespace dlock::dialects {

// Threads: wait() by one, raise() by any. Owns: an eventfd, which no other program inherits.
class Interrupt {
 public:
  Interrupt();  // throws Failure{refused} where the process has no descriptor left
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Ends the wait() that runs, or else the next one.
  void raise() noexcept;

  enum class Ended { ready, interrupted, late };
  // Waits until `descriptor` (-1: none) has one of poll(2)'s `events`, or is broken; raise(); or `until`. What is ready
  // is told first.
  Ended wait(int descriptor, short events, Deadline until);

 private:
  int event_ = -1;
};

}  // namespace dlock::dialects
