// Whether this process is still the one an object was made in; and what a fork() waits for, and how long, so that the
// child finds no mutex locked.
#pragma once

#include "types/annotated_mutex.hpp"

#include <span>

namespace dlock {

// How many fork() calls lie between the start of the first process and this one. Costs one load.
unsigned fork_generation() noexcept;

// A child made by fork() finds these mutexes free, whoever had them: the process forks while it holds them all. For
// such as live for ever, and are held for a few instructions, inside of any other. Says so once for each.
void keep_free_at_fork(std::span<AnnotatedMutex> mutexes);

// A lock that is shared by all who have one, and that a fork() on another thread takes for itself: it waits until there
// is none, though no longer than ten seconds. For calls of libraries that have mutexes of their own, which a child
// would find locked for ever: around one step that waits for nobody. May be nested.
class ForkLock {
 public:
  ForkLock() noexcept;
  ~ForkLock();
  ForkLock(const ForkLock&) = delete;
  ForkLock& operator=(const ForkLock&) = delete;
};

// While one exists, its thread has none of its ForkLocks: for a wait inside of such a step.
class ForkUnlock {
 public:
  ForkUnlock() noexcept;
  ~ForkUnlock();
  ForkUnlock(const ForkUnlock&) = delete;
  ForkUnlock& operator=(const ForkUnlock&) = delete;

 private:
  const int suspended_;
};

// Remembers the process it was made in.
class ForkGuard {
 public:
  ForkGuard() noexcept : generation_(fork_generation()) {}
  bool forked() const noexcept { return generation_ != fork_generation(); }

 private:
  unsigned generation_;
};

}  // namespace dlock
