// How long work in batches lets others at the database between two of them.
#pragma once

#include "engine/pause.hpp"
#include "types/clock.hpp"

#include <dlock/duration.hpp>

#include <algorithm>
#include <chrono>
#include <stop_token>

namespace dlock::engine {

// Within these bounds: a batch that took long has mostly waited for others.
constexpr Duration shortest_breath = std::chrono::milliseconds{1};
constexpr Duration longest_breath = std::chrono::milliseconds{100};

// After a batch, for `rest` times as long as it took: 0.5 leaves others a third of the time. True: it is time to stop.
inline bool breathe(Instant begun, const std::stop_token& stop, double rest = 0.5) {
  const auto now = BootClock::now();
  const auto took = std::chrono::floor<Duration>(now - begun);
  return pause_until(later(now, std::clamp(std::chrono::floor<Duration>(took * rest), shortest_breath, longest_breath)),
                     stop);
}

}  // namespace dlock::engine
