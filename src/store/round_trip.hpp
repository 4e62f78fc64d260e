// Estimates how long a request takes to the database and back, as the shortest of the last few did: what took longer has
// waited for a lock, or for a disk.
#pragma once

#include "types/clock.hpp"

#include <dlock/duration.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <limits>

namespace dlock::store {

// Threads: any. Allocates nothing. Time: microseconds.
class RoundTrip {
 public:
  // A request was answered after this long; or it was not, for so long.
  void note(BootClock::duration took) noexcept {
    const auto at = count_.fetch_add(1, std::memory_order_relaxed);
    const auto us = std::chrono::floor<Duration>(took).count();
    last_[at % last_.size()].store(std::max<Duration::rep>(us, 1), std::memory_order_relaxed);
  }

  // 0: nothing was asked yet.
  Duration estimate() const noexcept {
    auto least = std::numeric_limits<Duration::rep>::max();
    for (const auto& one : last_)
      if (const auto us = one.load(std::memory_order_relaxed); us > 0) least = std::min(least, us);
    return Duration{least == std::numeric_limits<Duration::rep>::max() ? 0 : least};
  }

 private:
  std::array<std::atomic<Duration::rep>, 8> last_{};  // 0: nothing was noted there yet
  std::atomic<std::size_t> count_{0};
};

}  // namespace dlock::store
