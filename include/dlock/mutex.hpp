// A lock as the standard library's guards want it.
#pragma once

#include <dlock/duration.hpp>
#include <dlock/engine.hpp>
#include <dlock/export.hpp>
#include <dlock/lock.hpp>
#include <dlock/options.hpp>

#include <chrono>
#include <memory>
#include <string_view>

namespace dlock {
inline namespace v0 {

// One name as a mutex: TimedLockable, recursive per thread, for std::unique_lock, std::scoped_lock, std::lock. It
// shares its entries with what the same thread holds of the name through the same engine (Reentrance::thread). Where a
// job is given, or current, that is what enters: threads of one job do not shut each other out.
// Threads: all members from any; unlock() and held() only from the thread that holds it.
// Owns: what is locked through it (released by the destructor), and a share of the engine, which may go before it and
// ends no wait here. No other thread may be inside of a member when it is destroyed.
// Fails: locking throws what Engine::try_lock throws; false is busy. After fork() the child's locking throws misuse,
// its unlocking and destroying do nothing.
class DLOCK_EXPORT Mutex {
 public:
  // Fails: misuse (a bad name or option, a mode, or another reentrance than `thread`). Nothing is sent.
  Mutex(const Engine& engine, std::string_view name, LockOptions options = {});
  ~Mutex();
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock();
  bool try_lock();
  bool try_lock_for(SaturatingDuration wait);
  template <class Clock, class Length>
  bool try_lock_until(std::chrono::time_point<Clock, Length> end) {
    return try_lock_for(time_until(end));
  }

  // Ends what the last successful lock() of this thread began. Never throws: that the lease was lost meanwhile, or that
  // the release could not be confirmed, is told to the observer; held() tells before.
  // Takes at most timeouts.release. Without a lock() of this thread it does nothing.
  void unlock() noexcept;

  // The entry of this thread, for lost(), check(), token(). It lives until the matching unlock().
  // Fails: misuse if this thread does not hold the mutex.
  Lock& held();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace v0
}  // namespace dlock
