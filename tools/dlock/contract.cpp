// This file knows which times of a run fit together.
#include "contract.hpp"

#include "tools/shared/usage.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dlock::tools::run {
namespace {

using namespace std::chrono_literals;

constexpr Duration shortest_ttl = 1s, longest_ttl = std::chrono::hours{24} * 3652;

Times times_for(const Chosen& chosen, Duration ttl) {
  Times times;
  times.ttl = ttl;
  times.safety = std::min(std::max<Duration>(500ms, ttl / 20), ttl / 6);
  times.renew_every = chosen.renew_every.value_or(ttl / 3);
  times.kill_after = chosen.kill_after.value_or(std::min<Duration>(5s, ttl / 6));
  return times;
}

bool fits(const Times& times) { return times.ttl >= 2 * times.renew_every + times.kill_after + times.safety; }

// Longer ttls always fit better, so halving finds the smallest, to the tenth of a second.
Duration smallest_ttl(const Chosen& chosen) {
  Duration low = shortest_ttl, high = longest_ttl;
  while (high - low > 1ms) {
    const auto middle = low + (high - low) / 2;
    (fits(times_for(chosen, middle)) ? high : low) = middle;
  }
  return std::chrono::ceil<std::chrono::duration<long, std::deci>>(high);
}

}  // namespace

Times settle(const Chosen& chosen) {
  if (chosen.ttl < shortest_ttl || chosen.ttl > longest_ttl)
    throw UsageError(fmt::format("--ttl {} is out of range: from 1s to 10 years", shown(chosen.ttl)));
  const auto times = times_for(chosen, chosen.ttl);
  if (!fits(times))
    throw UsageError(fmt::format("--ttl {} is too short for --renew-every {} and --kill-after {}; the smallest that would do is {}",
                                 shown(times.ttl), shown(times.renew_every), shown(times.kill_after),
                                 shown(smallest_ttl(chosen))));
  return times;
}

}  // namespace dlock::tools::run
