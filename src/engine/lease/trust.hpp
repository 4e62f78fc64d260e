// How long a holder may believe in its lease, and the margin that is taken off it. Pure arithmetic on given instants.
#pragma once

#include "types/clock.hpp"

#include <dlock/duration.hpp>

#include <algorithm>
#include <optional>

namespace dlock::engine {

// The margin between the end of trust and the end of the lease, for what differs between two clocks' speeds and for
// the resolution of the database's clock: lease/20, within [smallest, 500 ms], unless `chosen`.
constexpr Duration margin_of(Duration lease, Duration smallest, std::optional<Duration> chosen) noexcept {
  if (chosen) return *chosen;
  return std::clamp<Duration>(lease / 20, smallest, std::max<Duration>(smallest, std::chrono::milliseconds{500}));
}

// The end of trust: counted from before the request was sent, since the lease began after that; never from the answer.
constexpr Instant trust_end(Instant sent, Duration lease, Duration margin) noexcept {
  return lease <= margin ? sent : later(sent, lease - margin);
}

}  // namespace dlock::engine
