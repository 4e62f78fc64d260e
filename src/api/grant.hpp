// This file knows what a Lock owns.
#pragma once

#include "engine/core.hpp"
#include "types/process.hpp"

#include <dlock/lock.hpp>

#include <memory>
#include <optional>

namespace dlock {
inline namespace v0 {

struct Lock::Grant {
  std::shared_ptr<Core> core;
  std::shared_ptr<engine::Held> held;
  Birthplace birthplace{};
  std::optional<Released> released{};
};

}  // namespace v0
}  // namespace dlock
