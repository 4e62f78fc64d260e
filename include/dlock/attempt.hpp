// This file knows what an attempt to lock answers: the lock, or why there is none.
#pragma once

#include <dlock/export.hpp>
#include <dlock/grant.hpp>
#include <dlock/holder.hpp>
#include <dlock/lock.hpp>
#include <dlock/token.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace dlock {
inline namespace v0 {

class Core;
class Engine;

// Why nothing was granted.
enum class Refusal {
  busy,       // somebody holds it or comes first, or it is inside its at-least time
  locked,     // nobody was seen to hold it, but another transaction has its row locked: Engine::try_lock_in, a fence
  timed_out,  // the wait was over before it could be had
  stopped,    // the stop token said so
};

DLOCK_EXPORT std::string_view to_string(Refusal refusal) noexcept;

// A std::optional<T> that also says why it is empty: `if (auto lock = engine.try_lock_for("job", 5s)) …; else
// log(to_string(*lock.why()))`. T is Lock, Token or Grant. It may be moved into a std::optional<T>, which drops the reason.
// Threads: one at a time. Owns: what was granted, like the optional. It may outlive its Engine.
template <class T>
class [[nodiscard]] DLOCK_EXPORT Attempt : public std::optional<T> {
 public:
  Attempt() = default;  // nothing was asked: to be moved into

  // Empty: it was granted, or nothing was asked.
  std::optional<Refusal> why() const noexcept { return why_; }

  // The row of the name as it is now, by one more statement: who holds it, since when, for how long. That may be somebody
  // else than who was in the way, or nobody. Empty: there is no row.
  // Fails: as Engine::inspect; misuse where the engine is gone, or why() is empty.
  std::optional<Holder> holder() const;

 private:
  friend class Engine;
  template <class... Arguments>
  explicit Attempt(std::in_place_t, Arguments&&... arguments)
      : std::optional<T>(std::in_place, std::forward<Arguments>(arguments)...) {}
  Attempt(Refusal why, std::weak_ptr<Core> core, std::string_view name)
      : why_(why), core_(std::move(core)), name_(name) {}

  std::optional<Refusal> why_{};
  std::weak_ptr<Core> core_{};
  std::string name_{};
};

extern template class Attempt<Lock>;
extern template class Attempt<Token>;
extern template class Attempt<Grant>;

}  // namespace v0
}  // namespace dlock
