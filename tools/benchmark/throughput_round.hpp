// A round of measuring throughput, and what is timed in it.
#pragma once

#include "record.hpp"
#include "samples.hpp"

#include <chrono>
#include <cstdint>

namespace bench {

// Everybody warms up until `from`, and what begins from then on and before `to` counts.
struct ThroughputRound {
  Clock::time_point from, to;
  double rate = 0;    // of one client
  double offset = 0;  // of its first pair, in intervals
};

struct Times {
  Record acquire, release, pair;
  Clock::time_point last{};
  std::uint64_t warm_ups = 0;  // pairs that do not count

  void add(Clock::time_point begin, Clock::time_point middle, Clock::time_point end) {
    const auto nanoseconds = [](Clock::time_point from, Clock::time_point to) -> std::int64_t {
      return std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count();
    };
    acquire.add(nanoseconds(begin, middle));
    release.add(nanoseconds(middle, end));
    pair.add(nanoseconds(begin, end));
    last = end;
  }
};

}  // namespace bench
