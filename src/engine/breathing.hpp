// How long work in batches lets others at the database between two of them, and how many rows the next batch has. The
// bounds of that are the dialect's: types/removal_pace.hpp.
#pragma once

#include "types/clock.hpp"
#include "types/pause.hpp"
#include "types/removal_pace.hpp"

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

// How many rows a batch has, and the rest after it. Who wants one of them waits for all of them: they are to take less
// time than an attempt gives a row that is locked.
class BatchSize {
 public:
  explicit BatchSize(const RemovalPace& pace) : pace_(pace), rows_(pace.least > 0 ? pace.least : pace.rows) {}

  std::size_t rows() const noexcept { return rows_; }
  // After a batch. True: it is time to stop.
  bool breathe(Instant begun, const std::stop_token& stop) {
    if (pace_.least > 0) {
      constexpr Duration longest = std::chrono::milliseconds{25};
      const auto took = std::max(std::chrono::floor<Duration>(BootClock::now() - begun), Duration{1});
      const auto fitting = rows_ * static_cast<std::size_t>(longest.count()) / static_cast<std::size_t>(took.count());
      rows_ = std::clamp(std::min(fitting, 2 * rows_), pace_.least, pace_.rows);
    }
    return engine::breathe(begun, stop, pace_.rest);
  }

 private:
  const RemovalPace pace_;
  std::size_t rows_;
};

}  // namespace dlock::engine
