// The program's operator new, which counts.
#include "support/allocations.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DLOCK_COUNTS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DLOCK_COUNTS 0
#endif
#endif
#ifndef DLOCK_COUNTS
#define DLOCK_COUNTS 1
#endif

namespace {

thread_local std::size_t asked = 0;
std::atomic<std::size_t> bytes{0};

// Of the allocations that still are to come until the last one that is refused, the last `refused`.
thread_local bool spared = false;
std::atomic<long> to_come{0}, refused{0};

thread_local long to_come_here = 0;

[[maybe_unused]] bool is_refused() noexcept {
  if (to_come_here > 0 && --to_come_here == 0) return true;
  if (to_come.load(std::memory_order_relaxed) == 0 || spared) return false;
  auto left = to_come.load();
  while (left > 0 && !to_come.compare_exchange_weak(left, left - 1)) {}
  return left > 0 && left <= refused.load();
}

}  // namespace

namespace dlock::test {

bool allocations_are_counted() noexcept { return DLOCK_COUNTS != 0; }
std::size_t allocations() noexcept { return asked; }
std::size_t bytes_allocated() noexcept { return bytes.load(); }

void refuse_allocations(long nth, long width) noexcept {
  spared = true;
  refused = width;
  to_come = nth - 1 + width;
}
bool allocations_were_refused() noexcept { return to_come.load() == 0; }

void refuse_allocations_here(long nth) noexcept { to_come_here = nth; }

}  // namespace dlock::test

#if DLOCK_COUNTS

namespace {

std::size_t size_of(void* memory) noexcept { return ::malloc_usable_size(memory) + sizeof(std::size_t); }

}  // namespace

void* operator new(std::size_t size) {
  void* const memory = is_refused() ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  ++asked;
  bytes.fetch_add(size_of(memory), std::memory_order_relaxed);
  return memory;
}

void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  bytes.fetch_sub(size_of(memory), std::memory_order_relaxed);
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

#endif
