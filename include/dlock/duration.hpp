// The unit of every time at dlock's face: the microsecond, as in the table.
#pragma once

#include <chrono>

namespace dlock {
inline namespace v0 {

// A length of time that dlock tells.
using Duration = std::chrono::microseconds;

// A length of time that dlock is told: every std::chrono::duration converts to it. One that is wider saturates, so that
// `std::chrono::hours::max()` means "for ever"; one that is finer is rounded away from zero, which means "not at all";
// one that is no number is as wrong as a negative one. What is calculated with it is calculated with microseconds,
// which do not saturate.
class SaturatingDuration : public Duration {
 public:
  constexpr SaturatingDuration() noexcept : Duration(0) {}
  template <class Rep, class Period>
  constexpr SaturatingDuration(std::chrono::duration<Rep, Period> length) noexcept : Duration(saturated(length)) {}

 private:
  template <class Rep, class Period>
  static constexpr Duration saturated(std::chrono::duration<Rep, Period> length) noexcept {
    using Wide = std::chrono::duration<long double, Duration::period>;
    const auto wide = std::chrono::duration_cast<Wide>(length);
    if (wide >= Wide{Duration::max()}) return Duration::max();
    if (!(wide > Wide{Duration::min()})) return Duration::min();
    const auto whole = std::chrono::duration_cast<Duration>(wide);
    if (std::chrono::duration_cast<Wide>(whole) == wide) return whole;
    return wide < Wide::zero() ? whole - Duration{1} : whole + Duration{1};
  }
};

// A lease that nothing ends but a release, by its holder or by force (Engine::force_release): for those who would
// rather have an operator come than a second holder. So does nobody's crash end it. It is the longest there is, ten
// years. Its engine asks every ten seconds (LockOptions::renew_every) whether it still holds it.
inline constexpr Duration until_released = std::chrono::hours{24} * 3652;

// How long it is until then, by that clock; 0 where the time has passed.
template <class Clock, class Length>
SaturatingDuration time_until(std::chrono::time_point<Clock, Length> end) {
  // The two may have different units, and neither unit can hold all values of the other.
  using Wide = std::chrono::duration<long double>;
  const auto now = Clock::now();
  const auto left = Wide{end.time_since_epoch()} - Wide{now.time_since_epoch()};
  if (!(left > Wide::zero())) return {};
  return left < std::chrono::hours{24} * 365 ? SaturatingDuration{end - now} : SaturatingDuration{left};
}

}  // namespace v0
}  // namespace dlock
