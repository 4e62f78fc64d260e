// How long to wait between two attempts.
#pragma once

#include "types/clock.hpp"

#include <dlock/duration.hpp>

#include <algorithm>
#include <random>

namespace dlock::engine {

// A random length in [low, high].
inline Duration between(Duration low, Duration high) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return Duration{std::uniform_int_distribution<Duration::rep>{low.count(), std::max(low, high).count()}(random)};
}

// `length`, give or take a quarter.
inline Duration jittered(Duration length) { return between(length - length / 4, length + length / 4); }

// Waits between repetitions after a failure: decorrelated jitter, at once for the first (a connection that had gone
// stale is no reason to wait). M. Brooker, "Exponential Backoff And Jitter", 2015.
class Backoff {
 public:
  explicit Backoff(Duration longest) : longest_(longest) {}

  Duration next() {
    if (first_) {
      first_ = false;
      return Duration{};
    }
    last_ = std::min(longest_, between(shortest, last_ * 3));
    return last_;
  }
  void begin_anew() {
    first_ = true;
    last_ = shortest;
  }

 private:
  static constexpr Duration shortest = std::chrono::milliseconds{5};
  const Duration longest_;
  Duration last_ = shortest;
  bool first_ = true;
};

// Waits between looks at a busy lock: from `first` growing to `longest`, ±25 %; what is longer than a century is one.
class PollingPauses {
 public:
  PollingPauses(Duration first, Duration longest)
      : longest_(std::min(longest, century)), first_(std::min(first, longest_)), current_(first_) {}

  Duration next() {
    const auto pause = jittered(current_);
    current_ = std::min(longest_, current_ + current_ / 2);
    return pause;
  }
  void begin_anew() { current_ = first_; }

 private:
  static constexpr Duration century = std::chrono::days{36525};
  const Duration longest_, first_;
  Duration current_;
};

}  // namespace dlock::engine
