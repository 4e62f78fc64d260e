// How a fork() is noticed, and what it waits for: the child's side of it counts.
#include "types/process.hpp"

#include "types/clock.hpp"
#include "types/mutant.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace dlock {
namespace {

std::atomic<unsigned> generation{0};

// How many ForkLocks this thread has.
thread_local int locks_here = 0;

// What is held while the process forks. Never destroyed: it may fork while it ends.
struct Kept {
  std::mutex entrance;        // the first ForkLock of a thread passes it
  std::atomic<int> locks{0};  // of all threads
  std::mutex mutex;
  std::vector<std::span<std::mutex>> groups;  // guarded by mutex

  void enter(int count) {
    const bool first = locks_here == 0;
    if (first) entrance.lock();
    locks_here += count;
    locks.fetch_add(count);
    if (first) entrance.unlock();
  }
  void leave(int count) {
    locks_here -= count;
    locks.fetch_sub(count);
  }
  // A step that has not ended by then waits for something after all, and a program that forks is not held up by it. On a
  // crowded machine steps of several threads, which a library does one after the other, take seconds.
  void await_locks() {
    constexpr std::chrono::microseconds pause{50};
    constexpr std::chrono::seconds longest{10};
    const auto begin = BootClock::now();
    while (locks.load() > locks_here && BootClock::now() - begin < longest) std::this_thread::sleep_for(pause);
  }

  void hold() {
    entrance.lock();
    if (!planted("fork_awaits_nobody")) await_locks();
    mutex.lock();
    for (const auto& group : groups)
      for (auto& each : group) each.lock();
  }
  void let_go() {
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

void keep_free_at_fork(std::span<std::mutex> mutexes) {
  fork_generation();
  const std::lock_guard guard(kept().mutex);
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
