// This file knows what a Lock owns.
#pragma once

#include "engine/core.hpp"
#include "types/process.hpp"

#include <dlock/lock.hpp>

#include <cstdint>
#include <memory>

namespace dlock {
inline namespace v0 {

struct Lock::Handle {
  std::shared_ptr<Core> core;
  std::shared_ptr<engine::Held> held;
  Birthplace birthplace{};
  // What became of it, once it was let go of. As small as it can be: there may be very many of these.
  bool let_go = false;
  std::uint8_t became = 0;

  bool released() const noexcept { return let_go; }
  Released what_became() const noexcept { return static_cast<Released>(became); }
  void is_released(Released released) noexcept {
    let_go = true;
    became = static_cast<std::uint8_t>(released);
  }
};

}  // namespace v0
}  // namespace dlock
