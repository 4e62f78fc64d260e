// How much memory this program takes by operator new, and what happens when there is none: not what the databases' own
// libraries take.
#pragma once

#include <cstddef>

namespace dlock::test {

// False where the sanitizers have allocators of their own.
bool allocations_are_counted() noexcept;

// How many times the calling thread has asked for memory.
std::size_t allocations() noexcept;

// How many bytes all threads have, with what the allocator needs to keep them.
std::size_t bytes_allocated() noexcept;

// Of what all threads but the calling one ask for from now on, the `nth` and the `width` - 1 after it are refused.
void refuse_allocations(long nth, long width) noexcept;
// Whether all of them have been.
bool allocations_were_refused() noexcept;
// Of what the calling thread asks for from now on the `nth` is refused; 0: nothing.
void refuse_allocations_here(long nth) noexcept;

}  // namespace dlock::test
