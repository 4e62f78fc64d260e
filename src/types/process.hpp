// This file knows whether this process is still the one an object was made in.
#pragma once

#include <mutex>
#include <span>

namespace dlock {

// How many fork() calls lie between the start of the first process and this one. Costs one load.
unsigned fork_generation() noexcept;

// A child made by fork() finds these mutexes free, whoever had them: the process forks while it holds them all. For such
// as live for ever, and are held for a few instructions, inside of any other. Says so once for each.
void keep_free_at_fork(std::span<std::mutex> mutexes);

// While one exists, a fork() on any other thread waits, though no longer than a second. For calls of libraries that have
// mutexes of their own, which a child would find locked for ever: around one step that waits for nobody. May be nested.
class ForkGuard {
 public:
  ForkGuard() noexcept;
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
};

// While one exists, the ForkGuards of its thread count for nothing: for a wait inside of such a step.
class ForkPermit {
 public:
  ForkPermit() noexcept;
  ~ForkPermit();
  ForkPermit(const ForkPermit&) = delete;
  ForkPermit& operator=(const ForkPermit&) = delete;

 private:
  const int suspended_;
};

// Remembers the process it was made in.
class Birthplace {
 public:
  Birthplace() noexcept : generation_(fork_generation()) {}
  bool forked() const noexcept { return generation_ != fork_generation(); }

 private:
  unsigned generation_;
};

}  // namespace dlock
