// How long work in batches lets others at the database between two of them.
#pragma once

#include "engine/pause.hpp"
#include "types/clock.hpp"

#include <dlock/duration.hpp>

#include <algorithm>
#include <chrono>
#include <stop_token>

namespace dlock::engine {

// Half as long as the batch took, so that a third of the time belongs to others, within these bounds: a long one has mostly
// waited for others.
constexpr Duration shortest_breath = std::chrono::milliseconds{1};
constexpr Duration longest_breath = std::chrono::milliseconds{100};

// After a batch. True: it is time to stop.
inline bool breathe(Instant begun, const std::stop_token& stop) {
  const auto now = BootClock::now();
  const auto took = std::chrono::floor<Duration>(now - begun);
  return pause_until(later(now, std::clamp(Duration{took / 2}, shortest_breath, longest_breath)), stop);
}

}  // namespace dlock::engine
