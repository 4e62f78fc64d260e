// The clock that trust is counted on, the one that counts suspend, and its timer.
#pragma once

#include <dlock/duration.hpp>

#include <sys/timerfd.h>

#include <algorithm>
#include <chrono>
#include <ctime>

namespace dlock::tools::run {

// A moment of CLOCK_BOOTTIME, since the start of the machine.
inline Duration boot_now() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::seconds{time.tv_sec} + std::chrono::floor<Duration>(std::chrono::nanoseconds{time.tv_nsec});
}

inline Duration after(Duration moment, Duration length) noexcept {
  return length > Duration::max() - moment ? Duration::max() : moment + length;
}

// Makes a timerfd of CLOCK_BOOTTIME expire at that moment; Duration::max() is never.
inline void ring_at(int timer, Duration moment) noexcept {
  itimerspec spec{};
  if (moment != Duration::max()) {
    moment = std::max(moment, Duration{1});
    const auto seconds = std::chrono::floor<std::chrono::seconds>(moment);
    spec.it_value.tv_sec = seconds.count();
    spec.it_value.tv_nsec = std::chrono::nanoseconds{moment - seconds}.count();
  }
  ::timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, nullptr);
}

}  // namespace dlock::tools::run
