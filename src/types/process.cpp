// How a fork() is noticed, and what it waits for: the child's side of it counts.
#include "types/process.hpp"

#include "types/annotated_mutex.hpp"
#include "types/clock.hpp"
#include "types/mutant.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace dlock {
namespace {

std::atomic<unsigned> generation{0};

// How many ForkLocks this thread has.
thread_local int locks_here = 0;

// What is held while the process forks. Never destroyed: it may fork while it ends.
struct Kept {
  AnnotatedMutex entrance;    // the first ForkLock of a thread passes it
  std::atomic<int> locks{0};  // of all threads
  AnnotatedMutex mutex;
  std::vector<std::span<AnnotatedMutex>> groups GUARDED_BY(mutex);

  void count_in(int count) {
    locks_here += count;
    locks.fetch_add(count);
  }
  void enter(int count) {
    if (locks_here > 0) return count_in(count);
    const MutexLock guard(entrance);
    count_in(count);
  }
  void leave(int count) {
    locks_here -= count;
    locks.fetch_sub(count);
  }
  // A step that has not ended by then waits for something after all, and a program that forks is not held up by it. On
  // a crowded machine steps of several threads, which a library does one after the other, take seconds.
  void await_locks() {
    constexpr std::chrono::microseconds pause{50};
    constexpr std::chrono::seconds longest{10};
    const auto begin = BootClock::now();
    while (locks.load() > locks_here && BootClock::now() - begin < longest) std::this_thread::sleep_for(pause);
  }

  // Which mutexes those are is known at run time only, and they are let go of by another call.
  void hold() NO_THREAD_SAFETY_ANALYSIS {
    entrance.lock();
    if (!planted("fork_awaits_nobody")) await_locks();
    mutex.lock();
    for (const auto& group : groups)
      for (auto& each : group) each.lock();
  }
  void let_go() NO_THREAD_SAFETY_ANALYSIS {
    for (const auto& group : groups)
      for (auto& each : group) each.unlock();
    mutex.unlock();
    entrance.unlock();
  }
  void let_go_in_child() {
    locks.store(locks_here);  // the other threads' are not there
    let_go();
  }
};

Kept& kept() {
  static Kept& all = *new Kept;
  return all;
}

bool watch_forks() noexcept {
  static_cast<void>(kept());
  ::pthread_atfork([] { kept().hold(); }, [] { kept().let_go(); },
                   [] {
                     generation.fetch_add(1, std::memory_order_relaxed);
                     kept().let_go_in_child();
                   });
  return true;
}

}  // namespace

unsigned fork_generation() noexcept {
  static const bool watching = watch_forks();
  static_cast<void>(watching);
  return generation.load(std::memory_order_relaxed);
}

void keep_free_at_fork(std::span<AnnotatedMutex> mutexes) {
  fork_generation();
  const MutexLock guard(kept().mutex);
  kept().groups.push_back(mutexes);
}

ForkLock::ForkLock() noexcept {
  fork_generation();
  kept().enter(1);
}
ForkLock::~ForkLock() { kept().leave(1); }

ForkUnlock::ForkUnlock() noexcept : suspended_(locks_here) { kept().leave(suspended_); }
ForkUnlock::~ForkUnlock() {
  if (suspended_ > 0) kept().enter(suspended_);
}

}  // namespace dlock
