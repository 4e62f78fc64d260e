// How to wait for an instant without missing a request to stop.
#pragma once

#include "types/annotated_mutex.hpp"
#include "types/clock.hpp"

#include <condition_variable>
#include <stop_token>

namespace dlock {

// Waits until `until`, or until the token is stopped. True: it was stopped.
inline bool pause_until(Instant until, const std::stop_token& stop) {
  AnnotatedMutex mutex;
  std::condition_variable_any changed;
  UniqueMutexLock guard(mutex);
  while (!stop.stop_requested() && BootClock::now() < until)
    changed.wait_until(guard, stop, until, [] { return false; });
  return stop.stop_requested();
}

}  // namespace dlock
