// How much longer a lease has to be made for work that takes so long.
#include "engine/core.hpp"
#include "types/mutant.hpp"

#include <algorithm>
#include <chrono>

namespace dlock {
inline namespace v0 {

void Core::ensure(const std::shared_ptr<engine::Lease>& held, Duration left) {
  const auto now = BootClock::now();
  if (held->remaining(now) >= left && !planted("ensure_always_extends")) return;
  // A margin is a twentieth of the lease, unless it is chosen, or that would be too short or needlessly long.
  constexpr Duration longest_margin = std::chrono::milliseconds{500};
  const Duration margin = options_.margin.value_or(
      std::clamp<Duration>(left / 19 + Duration{1}, table_->smallest_margin(), longest_margin));
  // As long as it is, where max_hold leaves that; a millisecond for the way to the question.
  const auto room = held->room(now);
  extend(held, {std::max<Duration>(std::min<Duration>(held->terms().asked(), room), left + margin), {}, true}, soon());
}

}  // namespace v0
}  // namespace dlock
