// Which thread holds a mutex, and how often.
#include "api/open.hpp"
#include "engine/lease/reentrance_table.hpp"
#include "types/name.hpp"
#include "types/process.hpp"

#include <dlock/error.hpp>
#include <dlock/mutex.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace dlock {
inline namespace v0 {

struct Mutex::State {
  std::string name;
  LockOptions options;
  ForkGuard fork_guard{};
  std::mutex mutex{};
  // Guarded by mutex; each list is touched by its own thread alone. More than one thread has one only if a lease was lost.
  std::map<engine::ThreadId, std::list<Lock>> holders{};
  Engine engine;  // ends before what its calls use

  void check_here() const {
    if (fork_guard.forked())
      throw Error(Fault::misuse, fmt::format("the mutex {} belongs to the parent of this process", in_quotes(name)));
  }

  bool keep(std::optional<Lock> lock) {
    if (!lock) return false;
    const std::lock_guard guard(mutex);
    holders[engine::this_thread_id()].emplace_back(std::move(lock->grant_));  // it stays this thread's
    return true;
  }
};

Mutex::Mutex(const Engine& engine, std::string_view name, LockOptions options) {
  api::check(options);
  if (options.reentrance.value_or(Reentrance::thread) != Reentrance::thread)
    throw Error(Fault::misuse,
                fmt::format("the mutex {} is recursive per thread; LockOptions::reentrance must be thread or "
                            "left unset",
                            in_quotes(name)));
  options.reentrance = Reentrance::thread;
  state_.reset(new State{.name = Name(name).text(), .options = std::move(options), .engine = engine.same()});
}

Mutex::~Mutex() {
  // After fork() another thread of the parent may have been inside: not even the memory may be touched.
  if (state_->fork_guard.forked()) static_cast<void>(state_.release());
}

void Mutex::lock() {
  state_->check_here();
  state_->keep(state_->engine.lock(state_->name, state_->options));
}

bool Mutex::try_lock() {
  state_->check_here();
  return state_->keep(state_->engine.try_lock(state_->name, state_->options));
}

bool Mutex::try_lock_for(SaturatingDuration wait) {
  state_->check_here();
  return state_->keep(state_->engine.try_lock_for(state_->name, std::max<Duration>(wait, {}), state_->options));
}

void Mutex::unlock() noexcept {
  if (state_->fork_guard.forked()) return;
  std::list<Lock> last;  // released without the mutex
  const std::lock_guard guard(state_->mutex);
  const auto found = state_->holders.find(engine::this_thread_id());
  if (found == state_->holders.end()) return;
  last.splice(last.end(), found->second, std::prev(found->second.end()));
  if (found->second.empty()) state_->holders.erase(found);
}

Lock& Mutex::held() {
  state_->check_here();
  const std::lock_guard guard(state_->mutex);
  const auto found = state_->holders.find(engine::this_thread_id());
  if (found == state_->holders.end())
    throw Error(Fault::misuse, fmt::format("the mutex {} is not held by this thread", in_quotes(state_->name)));
  return found->second.back();
}

}  // namespace v0
}  // namespace dlock
