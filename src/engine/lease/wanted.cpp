// What a holder learns of those who wait for its name.
#include "engine/core.hpp"

namespace dlock {
inline namespace v0 {

std::optional<Wanted> Core::wanted(const engine::Lease& held) const {
  const auto told = joined(held.wanted_since(), queues_->wanted_since(held));
  if (!told) return std::nullopt;
  return Wanted{std::chrono::floor<Duration>(BootClock::now() - told->since), told->mode};
}

std::stop_token Core::asked(const std::shared_ptr<engine::Lease>& held) {
  auto asked = held->asked();  // first: who begins to wait from here on finds somebody to tell
  if (!asked.stop_requested()) queues_->tell(held);
  return asked;
}

}  // namespace v0
}  // namespace dlock
