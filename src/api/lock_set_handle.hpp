// What a LockSet owns.
#pragma once

#include "api/lock_handle.hpp"
#include "engine/core.hpp"
#include "types/process.hpp"

#include <dlock/export.hpp>
#include <dlock/lock_set.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

namespace dlock {
inline namespace v0 {

struct DLOCK_HIDDEN LockSet::Handle {
  // With room for so many.
  Handle(std::shared_ptr<Core> its_core, std::size_t how_many);
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  // `all`: in the order of names, and at least one. What it cannot take, out of memory, is given back.
  void take(std::span<const std::shared_ptr<engine::Lease>> all);
  std::vector<std::shared_ptr<engine::Lease>> leases() const;
  void release();

  const std::shared_ptr<Core> core;
  std::vector<Lock> locks{};
  std::stop_source lost{};
  ForkGuard fork_guard{};
};

}  // namespace v0
}  // namespace dlock
