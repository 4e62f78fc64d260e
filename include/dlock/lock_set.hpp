// What can be done with several granted leases as one.
#pragma once

#include <dlock/duration.hpp>
#include <dlock/export.hpp>
#include <dlock/lock.hpp>
#include <dlock/transaction.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>

namespace dlock {
inline namespace v0 {

class Engine;

// The Locks of several names that were granted together (Engine::try_lock_all), each once, in the order of the names'
// bytes. They are released together: a Lock in it is looked at, and cannot be let go of alone.
// Threads: lost, valid, remaining, check, size, empty, contains, [] and the iterators from any; the rest one thread at
// a time. Its Locks as Lock says, also to whose job they belong.
// A set that was moved from, or made without a grant, holds nothing: what may throw throws misuse; it is empty and not
// valid(), lost() is stopped, remaining is 0. One that was released is not valid() either, and check, extend, fence and
// with_fence throw lost.
// Owns: the grants. It may outlive its Engine; they are renewed until it is gone.
// Time: as Lock.
class [[nodiscard]] DLOCK_EXPORT LockSet {
  struct Handle;

 public:
  LockSet() noexcept;                                         // holds nothing: to be moved into
  explicit LockSet(std::unique_ptr<Handle> handle) noexcept;  // the engine's
  LockSet(LockSet&&) noexcept;
  LockSet& operator=(LockSet&&) noexcept;  // releases what it held, like the destructor
  LockSet(const LockSet&) = delete;
  LockSet& operator=(const LockSet&) = delete;

  // Releases all of them, many in one statement. Never throws; takes at most timeouts.release, then leaves the rest to
  // the engine or to the leases. Does nothing in a process made by fork().
  ~LockSet();

  // As the destructor, but tells: `freed` where all of them are; else was_lost where one was, else unconfirmed where
  // one is, else still_held. A second call answers what the first one did.
  // Fails: misuse.
  Released release();

  // The Lock of a name, as long as the set is there and not moved from. Misuse where it has none.
  const Lock& operator[](std::string_view name) const;
  bool contains(std::string_view name) const noexcept;
  const Lock* begin() const noexcept;
  const Lock* end() const noexcept;
  std::size_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }

  // Set when the first of them is lost, or released by Engine::release_all, as Lock::lost() is, and on the same thread:
  // a callback that blocks delays others of that lock, and nothing else.
  std::stop_token lost() const noexcept;
  // Whether all of them can be trusted, computed from the clock here and now.
  bool valid() const noexcept;
  explicit operator bool() const noexcept { return valid(); }
  // For how much longer all of them can be trusted without another renewal: the least of all.
  Duration remaining() const noexcept;
  // Throws Error{lost} unless valid(), with the name of one that is not.
  void check() const;

  // As Lock::extend, for each of them by a statement of its own, in the order of names. Where one fails those before it
  // are extended.
  // Fails: as Lock::extend.
  void extend(SaturatingDuration lease, SaturatingDuration at_least = {});

  // As Lock::fence, for each of them in the order of names: what is committed in the transaction was written under all
  // of these locks. None of them is renewed until all are fenced. A statement each.
  // Fails: as Lock::fence; lost where one of them is, with its name.
  void fence(TransactionRef transaction, const FenceOptions& options = {});

  // As Lock::with_fence, with all of them fenced before the work.
  // Fails: as Lock::with_fence; lost where one of them is, with its name.
  void with_fence(TransactionRef transaction, const std::function<void()>& work, const FenceOptions& options = {});

 private:
  friend class Engine;
  Handle& here() const;  // throws misuse: moved from, or after fork()
  std::unique_ptr<Handle> handle_;
};

}  // namespace v0
}  // namespace dlock
