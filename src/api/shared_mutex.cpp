// What a shared mutex is to the engine: a name that threads lock exclusively, or shared with others.
#include "api/thread_locks.hpp"

#include <dlock/shared_mutex.hpp>

#include <utility>

namespace dlock {
inline namespace v0 {

struct SharedMutex::State {
  ThreadLocks exclusive, shared;
};

SharedMutex::SharedMutex(const Engine& engine, std::string_view name, LockOptions options)
    : state_(new State{ThreadLocks("shared mutex", engine, name, options),
                       ThreadLocks("shared mutex", engine, name, options, Mode::shared)}) {}

SharedMutex::~SharedMutex() {
  if (state_->exclusive.forked()) static_cast<void>(state_.release());
}

void SharedMutex::lock() { state_->exclusive.lock(); }
bool SharedMutex::try_lock() { return state_->exclusive.try_lock(); }
bool SharedMutex::try_lock_for(SaturatingDuration wait) { return state_->exclusive.try_lock_for(wait); }
void SharedMutex::unlock() noexcept { state_->exclusive.unlock(); }

void SharedMutex::lock_shared() { state_->shared.lock(); }
bool SharedMutex::try_lock_shared() { return state_->shared.try_lock(); }
bool SharedMutex::try_lock_shared_for(SaturatingDuration wait) { return state_->shared.try_lock_for(wait); }
void SharedMutex::unlock_shared() noexcept { state_->shared.unlock(); }

Lock& SharedMutex::held() { return state_->exclusive.held(); }
Lock& SharedMutex::held_shared() { return state_->shared.held(); }

}  // namespace v0
}  // namespace dlock
