// What a run holds: one lock, or several that were granted together.
#pragma once

#include <dlock/engine.hpp>
#include <dlock/lock.hpp>
#include <dlock/lock_set.hpp>
#include <dlock/options.hpp>

#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

namespace dlock::tools::run {

// Threads: as Lock says. Owns: the grants, which end with it.
class HeldLocks {
 public:
  explicit HeldLocks(Lock lock) : held_(std::move(lock)) {}
  explicit HeldLocks(LockSet locks) : held_(std::move(locks)) {}

  // In the order of their names.
  std::span<const Lock> all() const noexcept;
  // The one that can be trusted for the shortest time: one that is lost, if there is one.
  const Lock& weakest() const noexcept;
  Released release();

 private:
  std::variant<Lock, LockSet> held_;
};

// One try for all of the names, or as many as the wait allows. Empty: refused, and `refusal` tells why, and who holds
// the one that was in the way. `options` of several names: exclusive.
std::optional<HeldLocks> ask(Engine& engine, const std::vector<std::string>& names, std::optional<Duration> wait,
                             const LockOptions& options, const std::stop_token& stop, Refusal& refusal);

}  // namespace dlock::tools::run
