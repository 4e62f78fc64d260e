// The memory in which waiters of several processes write down what they saw.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace bench {

// What one waiter saw. Everything but `started` is read when its process has said that it is done.
struct Seat {
  std::atomic<std::int64_t> started;  // just before it asked; 0: not yet
  std::int64_t granted, leaving, left;
  std::int64_t token;
  std::array<char, 64> owner;
  std::array<char, 400> failure;  // empty: it had the lock and released it
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

// Shared with the processes that are forked later.
class Seats {
 public:
  explicit Seats(std::size_t count);
  ~Seats();
  Seats(const Seats&) = delete;
  Seats& operator=(const Seats&) = delete;

  std::span<Seat> all() const noexcept { return {seats_, count_}; }

 private:
  std::size_t count_;
  Seat* seats_;
};

// Text that is cut to what there is room for.
void write_down(std::span<char> room, const char* text) noexcept;

}  // namespace bench
