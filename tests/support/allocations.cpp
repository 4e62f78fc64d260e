// This file knows the program's operator new, which counts.
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

}  // namespace

namespace dlock::test {

bool allocations_are_counted() noexcept { return DLOCK_COUNTS != 0; }
std::size_t allocations() noexcept { return asked; }
std::size_t bytes_allocated() noexcept { return bytes.load(); }

}  // namespace dlock::test

#if DLOCK_COUNTS

namespace {

std::size_t size_of(void* memory) noexcept { return ::malloc_usable_size(memory) + sizeof(std::size_t); }

}  // namespace

void* operator new(std::size_t size) {
  void* const memory = std::malloc(size == 0 ? 1 : size);
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
