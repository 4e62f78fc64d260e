// A lock that many hold to read, or one to write, as the standard library's guards want it.
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

// One name as a shared mutex: SharedTimedMutex, recursive per thread, for std::shared_lock, std::unique_lock,
// std::scoped_lock. Any number of threads and processes hold it shared (Mode::shared), or one holds it exclusively, as
// a Mutex of the same name does; who waits for it exclusively comes before readers that come later. Each reader has a
// lease and a token of its own: one that dies keeps writers out until its lease is over, and one that lost it is told.
// A thread that holds it exclusively and locks it shared enters what it has (Reentrance::thread): it stays exclusive
// until both are unlocked. One that holds it shared and locks it exclusively would wait for itself: that is misuse, and
// Lock::try_upgrade of held_shared() asks for it.
// Threads: all members from any; unlock(), unlock_shared(), held() and held_shared() only from the thread that holds
// it. Owns: what is locked through it (released by the destructor), and a share of the engine, which may go before it
// and ends no wait here. No other thread may be inside of a member when it is destroyed.
// Fails: locking throws what Engine::try_lock throws; false is busy. After fork() the child's locking throws misuse,
// its unlocking and destroying do nothing.
class DLOCK_EXPORT SharedMutex {
 public:
  // Fails: misuse (a bad name or option, a mode, or another reentrance than `thread`). Nothing is sent.
  SharedMutex(const Engine& engine, std::string_view name, LockOptions options = {});
  ~SharedMutex();
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  // To write.
  void lock();
  bool try_lock();
  bool try_lock_for(SaturatingDuration wait);
  template <class Clock, class Length>
  bool try_lock_until(std::chrono::time_point<Clock, Length> end) {
    return try_lock_for(time_until(end));
  }

  // To read.
  void lock_shared();
  bool try_lock_shared();
  bool try_lock_shared_for(SaturatingDuration wait);
  template <class Clock, class Length>
  bool try_lock_shared_until(std::chrono::time_point<Clock, Length> end) {
    return try_lock_shared_for(time_until(end));
  }

  // Ends what the last successful lock() of this thread began, or lock_shared(). Never throws: that the lease was lost
  // meanwhile, or that the release could not be confirmed, is told to the observer; held() and held_shared() tell
  // before. Takes at most timeouts.release. Without a lock() of this thread, or a lock_shared(), it does nothing.
  void unlock() noexcept;
  void unlock_shared() noexcept;

  // The entry of this thread, for lost(), check(), token(). It lives until the matching unlock(), or unlock_shared().
  // Fails: misuse if this thread has not locked it that way.
  Lock& held();
  Lock& held_shared();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace v0
}  // namespace dlock
