// What a Lock owns.
#pragma once

#include "engine/core.hpp"
#include "types/mutant.hpp"
#include "types/process.hpp"

#include <dlock/lock.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace dlock {
inline namespace v0 {

struct Lock::Handle {
  Handle(std::shared_ptr<Core> its_core, std::shared_ptr<engine::Lease> its_held) noexcept
      : core(std::move(its_core)), held(std::move(its_held)) {}

  std::shared_ptr<Core> core;
  std::shared_ptr<engine::Lease> held;
  ForkGuard fork_guard{};
  // What became of it, once it was let go of. As small as it can be: there may be very many of these.
  std::atomic<bool> let_go{false};
  std::uint8_t became = 0;

  // Its Lock has another place, and most likely another thread; until one uses it nobody can say which.
  void moved() noexcept;
  void used() noexcept {
    if (held->adrift()) key();
  }
  void key() noexcept;

  // Of a child made by fork() it is none.
  bool is_parents() const noexcept { return fork_guard.forked() && !planted("child_has_lock"); }
  bool released() const noexcept { return let_go.load(std::memory_order_acquire); }
  Released what_became() const noexcept { return static_cast<Released>(became); }
  void is_released(Released released) noexcept {
    became = static_cast<std::uint8_t>(released);
    let_go.store(true, std::memory_order_release);
  }
};

}  // namespace v0
}  // namespace dlock
