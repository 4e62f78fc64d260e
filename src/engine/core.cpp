// How the parts of an engine are put together.
#include "engine/core.hpp"

#include "engine/lease/releasing_all.hpp"
#include "engine/wait/observing.hpp"

#include <utility>

namespace dlock {
inline namespace v0 {

Core::Core(std::shared_ptr<store::LockTable> table, EngineOptions options, std::string engine_id)
    : context_(std::make_shared<engine::Context>(std::move(table), std::move(options), std::move(engine_id))) {
  lingering_.look(context_->options.timeouts.connect);
}

engine::AcquiredAll Core::acquire_all(std::span<const Name> names, const LockOptions& options,
                                      const Patience& patience) {
  return engine::acquire_all(acquirer_, changes_, names, options, patience);
}

Engine::ReleasedAll Core::release_all(Duration timeout) {
  return engine::ReleaseOfAll(*context_, releaser_, lingering_, late_attempts_, later(BootClock::now(), timeout))();
}

bool Core::wait_free(const Name& name, const Patience& patience) {
  return engine::wait_free(*context_, lingering_, late_attempts_, name, patience);
}

std::optional<Wanted> Core::wanted(const engine::Lease& held) const {
  const auto told = joined(held.wanted_since(), context_->queues->wanted_since(held));
  if (!told) return std::nullopt;
  return Wanted{std::chrono::floor<Duration>(BootClock::now() - told->since), told->mode};
}

std::stop_token Core::asked(const std::shared_ptr<engine::Lease>& held) {
  auto asked = held->asked();  // first: who begins to wait from here on finds somebody to tell
  if (!asked.stop_requested()) context_->queues->tell(held);
  return asked;
}

}  // namespace v0
}  // namespace dlock
