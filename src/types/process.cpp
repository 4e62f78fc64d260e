// This file knows how a fork() is noticed: the child's side of it counts.
#include "types/process.hpp"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <vector>

namespace dlock {
namespace {

std::atomic<unsigned> generation{0};

// What is held while the process forks. Never destroyed: it may fork while it ends.
struct Kept {
  std::mutex mutex;
  std::vector<std::span<std::mutex>> groups;  // guarded by mutex

  void hold() {
    mutex.lock();
    for (const auto& group : groups)
      for (auto& each : group) each.lock();
  }
  void let_go() {
    for (const auto& group : groups)
      for (auto& each : group) each.unlock();
    mutex.unlock();
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
                     kept().let_go();
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

}  // namespace dlock
