// How one lock and several are held alike.
#include "held_locks.hpp"

#include "acquire_options.hpp"

#include <algorithm>
#include <utility>

namespace dlock::tools::run {

std::span<const Lock> HeldLocks::all() const noexcept {
  if (const auto* one = std::get_if<Lock>(&held_)) return {one, 1};
  const auto& several = *std::get_if<LockSet>(&held_);
  return {several.begin(), several.size()};
}

const Lock& HeldLocks::weakest() const noexcept {
  return *std::ranges::min_element(all(), {}, [](const Lock& lock) { return lock.remaining(); });
}

Released HeldLocks::release() {
  return std::visit([](auto& held) { return held.release(); }, held_);
}

std::optional<HeldLocks> ask(Engine& engine, const std::vector<std::string>& names, std::optional<Duration> wait,
                             const LockOptions& options, const std::stop_token& stop, Refusal& refusal) {
  if (names.size() == 1) {
    auto lock = tools::ask(engine, names.front(), wait, options, stop, refusal);
    return lock ? std::optional<HeldLocks>(std::move(*lock)) : std::nullopt;
  }
  auto locks = wait && *wait == Duration{}
                   ? engine.try_lock_all(names, options, &refusal)
                   : engine.try_lock_all_for(names, wait.value_or(Duration::max()), options, stop, &refusal);
  return locks ? std::optional<HeldLocks>(std::move(*locks)) : std::nullopt;
}

}  // namespace dlock::tools::run
