// Which thread has locked a name, and how often.
#include "api/thread_locks.hpp"

#include "api/open.hpp"
#include "engine/lease/reentrance_table.hpp"
#include "types/name.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

namespace dlock {
inline namespace v0 {
namespace {

LockOptions checked(std::string_view kind, std::string_view name, LockOptions options, Mode mode) {
  if (options.mode != Mode::exclusive)
    throw Error(Fault::misuse,
                fmt::format("the mode {} of the {} {} is not for LockOptions::mode to choose: leave it unset",
                            to_string(options.mode), kind, in_quotes(name)));
  if (options.reentrance.value_or(Reentrance::thread) != Reentrance::thread)
    throw Error(Fault::misuse,
                fmt::format("the {} {} is recursive per thread; LockOptions::reentrance must be thread or left unset",
                            kind, in_quotes(name)));
  options.reentrance = Reentrance::thread;
  options.mode = mode;
  api::check(options);
  return options;
}

}  // namespace

ThreadLocks::ThreadLocks(std::string_view kind, const Engine& engine, std::string_view name, LockOptions options,
                         Mode mode)
    : kind_(kind),
      name_(Name(name).text()),
      options_(checked(kind, name, std::move(options), mode)),
      engine_(engine.same()) {
  static_assert(std::is_same_v<decltype(holders_)::key_type, engine::ThreadId>);
}

void ThreadLocks::check_here() const {
  if (forked())
    throw Error(Fault::misuse, fmt::format("the {} {} belongs to the parent of this process", kind_, in_quotes(name_)));
}

bool ThreadLocks::keep(std::optional<Lock> lock) {
  if (!lock) return false;
  const MutexLock guard(mutex_);
  holders_[engine::this_thread_id()].emplace_back(std::move(lock->grant_));  // it stays this thread's
  return true;
}

void ThreadLocks::lock() {
  check_here();
  keep(engine_.lock(name_, options_));
}

bool ThreadLocks::try_lock() {
  check_here();
  return keep(engine_.try_lock(name_, options_));
}

bool ThreadLocks::try_lock_for(SaturatingDuration wait) {
  check_here();
  return keep(engine_.try_lock_for(name_, std::max<Duration>(wait, {}), options_));
}

void ThreadLocks::unlock() noexcept {
  if (forked()) return;
  std::list<Lock> last;  // released without the mutex
  const MutexLock guard(mutex_);
  const auto found = holders_.find(engine::this_thread_id());
  if (found == holders_.end()) return;
  last.splice(last.end(), found->second, std::prev(found->second.end()));
  if (found->second.empty()) holders_.erase(found);
}

Lock& ThreadLocks::held() {
  check_here();
  const MutexLock guard(mutex_);
  const auto found = holders_.find(engine::this_thread_id());
  if (found == holders_.end())
    throw Error(Fault::misuse, fmt::format("the {} {} is not held by this thread", kind_, in_quotes(name_)));
  return found->second.back();
}

}  // namespace v0
}  // namespace dlock
