// When a lease is to be renewed, one without an end included. Pure arithmetic on given instants.
#pragma once

#include "types/clock.hpp"
#include "types/mutant.hpp"

#include <dlock/duration.hpp>

#include <algorithm>
#include <optional>

namespace dlock::engine {

// From `earliest` on a lease travels with a round that leaves anyway; at `latest` a round leaves because of it.
struct Window {
  Instant earliest, latest;
};

// Where in its window a lease is due: 0 at the earliest of it, 1 at the end. One number for all leases of a round, so
// that they stay together, and another one for each round, so that processes that began together do not.
using Share = double;
constexpr Share smallest_share = 0.5, largest_share = 1.0;

// One without an end is renewed in order to hear whether it is still held.
constexpr Duration pace_until_released = std::chrono::seconds{10};

// Of a lease that was last confirmed by a request sent at `sent`: past a third of its length, and before 46 % of it.
// Where a pace was chosen, the renewal comes no later than that, and up to a quarter of it sooner.
inline Window renewal_window(Instant sent, Duration lease, std::optional<Duration> every, Share share) {
  if (!every && lease >= until_released && !planted("endless_unasked")) every = pace_until_released;
  const auto width = every ? std::min<Duration>(lease / 8, *every / 4) : Duration{lease / 8};
  const auto third = planted("renewal_late") ? Duration{lease - lease / 8 - lease / 20} : Duration{lease / 3};
  const auto earliest = every ? *every - width : third;
  return {later(sent, earliest), later(sent, earliest + std::chrono::duration_cast<Duration>(width * share))};
}

// After a failure at `now`: soon again, and together with those that failed with it.
inline Window retry_window(Instant now, Duration lease, Share share) {
  const auto pause =
      std::chrono::duration_cast<Duration>(std::min<Duration>(std::chrono::seconds{1}, lease / 10) * share);
  return {later(now, pause - pause / 4), later(now, pause)};
}

}  // namespace dlock::engine
