// What a mutex is to the engine: a name that threads lock exclusively.
#include "api/thread_locks.hpp"

#include <dlock/mutex.hpp>

#include <utility>

namespace dlock {
inline namespace v0 {

struct Mutex::State {
  ThreadLocks locks;
};

Mutex::Mutex(const Engine& engine, std::string_view name, LockOptions options)
    : state_(new State{ThreadLocks("mutex", engine, name, std::move(options))}) {}

Mutex::~Mutex() {
  if (state_->locks.forked()) static_cast<void>(state_.release());
}

void Mutex::lock() { state_->locks.lock(); }
bool Mutex::try_lock() { return state_->locks.try_lock(); }
bool Mutex::try_lock_for(SaturatingDuration wait) { return state_->locks.try_lock_for(wait); }
void Mutex::unlock() noexcept { state_->locks.unlock(); }
Lock& Mutex::held() { return state_->locks.held(); }

}  // namespace v0
}  // namespace dlock
