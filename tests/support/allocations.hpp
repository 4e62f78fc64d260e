// This file knows how much memory this program takes by operator new: not what the databases' own libraries take.
#pragma once

#include <cstddef>

namespace dlock::test {

// False where the sanitizers have allocators of their own.
bool allocations_are_counted() noexcept;

// How many times the calling thread has asked for memory.
std::size_t allocations() noexcept;

// How many bytes all threads have, with what the allocator needs to keep them.
std::size_t bytes_allocated() noexcept;

}  // namespace dlock::test
