// How to wait for an instant without missing a request to stop.
#pragma once

#include "types/clock.hpp"

#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace dlock::engine {

// Waits until `until`, or until the token is stopped. True: it was stopped.
inline bool pause_until(Instant until, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock guard(mutex);
  while (!stop.stop_requested() && BootClock::now() < until)
    changed.wait_until(guard, stop, until, [] { return false; });
  return stop.stop_requested();
}

}  // namespace dlock::engine
