// Which times of a run fit together, what those are that were not given, and which --ttl is the smallest that would do.
#include "deadlines.hpp"

#include "acquire_options.hpp"

#include "tools/shared/usage.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace dlock::tools::run {
namespace {

using namespace std::chrono_literals;
using Tenths = std::chrono::duration<std::int64_t, std::deci>;

constexpr Duration shortest_ttl = 1s;

struct Given {
  std::optional<Duration> renew_every{}, kill_after{};
};

Times times_for(const Given& given, Duration ttl) {
  Times times;
  times.ttl = ttl;
  times.safety = std::min(std::max<Duration>(500ms, ttl / 20), ttl / 6);
  times.renew_every = given.renew_every.value_or(ttl / 3);
  times.kill_after = given.kill_after.value_or(std::min<Duration>(5s, ttl / 6));
  return times;
}

// Written so that no sum can be too large for its type.
bool fits(const Times& times) {
  const auto room = times.ttl - times.safety;
  return times.kill_after <= room && times.renew_every <= (room - times.kill_after) / 2;
}

// A longer ttl always fits better, so halving finds the smallest, to the tenth of a second. Nothing: none would do.
std::optional<Tenths> smallest_ttl(const Given& given) {
  Tenths low = std::chrono::ceil<Tenths>(shortest_ttl), high = std::chrono::floor<Tenths>(until_released);
  if (!fits(times_for(given, high))) return std::nullopt;
  while (low < high) {
    const auto middle = low + (high - low) / 2;
    if (fits(times_for(given, middle))) high = middle;
    else low = middle + Tenths{1};
  }
  return high;
}

std::string advice(const Given& given) {
  const auto smallest = smallest_ttl(given);
  if (!smallest) return "no ttl up to 10 years would do";
  const auto tenths = smallest->count();
  return tenths % 10 == 0 ? fmt::format("the smallest that would do is {}s", tenths / 10)
                          : fmt::format("the smallest that would do is {}.{}s", tenths / 10, tenths % 10);
}

}  // namespace

Times settle(const Chosen& chosen) {
  const auto ttl = parse_lease("--ttl", chosen.ttl, shortest_ttl);
  Given given;
  if (chosen.renew_every) given.renew_every = parse_positive_duration("--renew-every", *chosen.renew_every);
  if (chosen.kill_after) given.kill_after = parse_duration("--kill-after", *chosen.kill_after);
  const auto times = times_for(given, ttl);
  if (!fits(times))
    throw UsageError(fmt::format(
        "--ttl {} is too short: it must be at least 2 x --renew-every ({}) + --kill-after ({}) + "
        "safety ({}); {}",
        in_quotes(chosen.ttl), shown(times.renew_every), shown(times.kill_after), shown(times.safety), advice(given)));
  return times;
}

}  // namespace dlock::tools::run
