// What is made of a row of measured times.
#pragma once

#include "record.hpp"

#include <chrono>
#include <cstdint>
#include <vector>

namespace bench {

// CLOCK_MONOTONIC: one clock for all processes of a machine.
using Clock = std::chrono::steady_clock;

using Nanoseconds = std::vector<std::int64_t>;

inline std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

// In microseconds; 0 of nothing. Puts the samples into another order.
double percentile_us(Nanoseconds& samples, double percent);

Record record_of(const Nanoseconds& samples);

}  // namespace bench
