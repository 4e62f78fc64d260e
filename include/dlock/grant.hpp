// What names one grant of a lock, so that it can be handed on.
#pragma once

#include <dlock/token.hpp>

#include <string>

namespace dlock {
inline namespace v0 {

// One grant of a name, as Lock::detach, Lock::grant and Engine::try_lock_in hand it out: what Engine::adopt and
// Engine::renew take, in any process. Whoever knows both may take charge of the lock; it is no secret, but nothing to
// show around either. A plain value: two adoptions of the same grant are told apart by the database, which gives the
// lock another owner at the first.
struct Grant {
  Token token{};
  std::string owner{};  // 32 hexadecimal digits, random

  friend bool operator==(const Grant&, const Grant&) = default;
};

}  // namespace v0
}  // namespace dlock
