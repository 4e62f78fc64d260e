// What a holder learns of those who wait for its name.
#include "engine/core.hpp"

#include <algorithm>

namespace dlock {
inline namespace v0 {

std::optional<Duration> Core::wanted(const engine::Lease& held) const {
  const auto elsewhere = held.wanted_since(), here = queues_->wanted_since(held);
  if (!elsewhere && !here) return std::nullopt;
  const auto since = std::min(elsewhere.value_or(Instant::max()), here.value_or(Instant::max()));
  return std::chrono::floor<Duration>(BootClock::now() - since);
}

std::stop_token Core::asked(const std::shared_ptr<engine::Lease>& held) {
  auto asked = held->asked();  // first: who begins to wait from here on finds somebody to tell
  if (!asked.stop_requested()) queues_->tell(held);
  return asked;
}

}  // namespace v0
}  // namespace dlock
