// This file knows the one clock that bounds trust and deadlines: CLOCK_BOOTTIME, which is steady and counts suspend.
#pragma once

#include <chrono>
#include <ctime>

namespace dlock {

struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept {
    timespec t{};
    ::clock_gettime(CLOCK_BOOTTIME, &t);
    return time_point{std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec}};
  }
};

using Instant = BootClock::time_point;
using Deadline = Instant;

// `length` after `start`, saturating: a length of years or `max()` gives the end of time instead of an overflow.
template <class Rep, class Period>
constexpr Instant later(Instant start, std::chrono::duration<Rep, Period> length) noexcept {
  const auto room = Instant::max() - start;
  if (length >= std::chrono::floor<std::chrono::duration<Rep, Period>>(room)) return Instant::max();
  return start + std::chrono::duration_cast<BootClock::duration>(length);
}

}  // namespace dlock
