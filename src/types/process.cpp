// This file knows how a fork() is noticed: the child's side of it counts.
#include "types/process.hpp"

#include <pthread.h>

#include <atomic>

namespace dlock {
namespace {

std::atomic<unsigned> generation{0};

bool watch_forks() noexcept {
  ::pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  return true;
}

}  // namespace

unsigned fork_generation() noexcept {
  static const bool watching = watch_forks();
  static_cast<void>(watching);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace dlock
