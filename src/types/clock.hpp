// The one clock that bounds trust and deadlines: CLOCK_BOOTTIME, which is steady and counts suspend.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <stop_token>
#include <utility>

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
    return time_point{std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec} +
                      std::chrono::nanoseconds{ahead.load(std::memory_order_relaxed)}};
  }

  // What the kernel's own clock shows at `at`: the same, outside of tests.
  static time_point of_the_kernel(time_point at) noexcept {
    return at - std::chrono::nanoseconds{ahead.load(std::memory_order_relaxed)};
  }

  // How far the clock was put ahead, by tests alone: as a suspend does it, without anything having run meanwhile.
  static inline std::atomic<rep> ahead{0};
};

using Instant = BootClock::time_point;

// For how long something may take: until an instant, or until its caller asks it to stop, whichever comes first.
// Threads: as a value.
class Deadline {
 public:
  Deadline(Instant at) noexcept : at_(at) {}
  Deadline(Instant at, std::stop_token stop) noexcept : at_(at), stop_(std::move(stop)) {}
  static constexpr Instant max() noexcept { return Instant::max(); }
  static constexpr Instant min() noexcept { return Instant::min(); }

  Instant at() const noexcept { return at_; }
  const std::stop_token& stop() const noexcept { return stop_; }
  bool stopped() const noexcept { return stop_.stop_requested(); }
  bool passed() const noexcept { return stopped() || BootClock::now() >= at_; }

  // The same, and not after `at`.
  Deadline no_later_than(Instant at) const { return {at < at_ ? at : at_, stop_}; }
  // For the first of so many that are to have equal parts of the time that is left.
  Deadline share(std::size_t parts) const {
    if (at_ == Instant::max()) return *this;
    const auto now = BootClock::now();
    return no_later_than(now + (at_ - now) / static_cast<BootClock::rep>(parts));
  }

 private:
  Instant at_;
  std::stop_token stop_{};
};

// `length` after `start`, saturating: a length of years or `max()` gives the end of time instead of an overflow.
template <class Rep, class Period>
constexpr Instant later(Instant start, std::chrono::duration<Rep, Period> length) noexcept {
  const auto room = Instant::max() - start;
  if (length >= std::chrono::floor<std::chrono::duration<Rep, Period>>(room)) return Instant::max();
  return start + std::chrono::duration_cast<BootClock::duration>(length);
}

// For the standard library's waits, which count in a clock of their own and overflow near the end of time: whoever
// waits so looks again after a day.
inline Instant countable(Instant until) noexcept {
  const auto most = later(BootClock::now(), std::chrono::hours{24});
  return until < most ? until : most;
}

}  // namespace dlock
