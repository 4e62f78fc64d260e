// How threads sleep until something has happened, and how one call wakes many of them.
#pragma once

#include "types/clock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

namespace dlock {

// An event count (Reed and Kanodia, 1979): it is read, then looked whether there is anything to wait for, then awaited
// to be another one than was read. Whoever makes something happen advances it afterwards. No thread takes a mutex, also
// not those that are woken. Threads: any.
class EventCount {
 public:
  using Count = std::uint32_t;
  // Which of those who sleep are meant: whoever shares a bit with them is woken. Never 0.
  using Whom = std::uint32_t;
  static constexpr Whom everybody = FUTEX_BITSET_MATCH_ANY;

  Count read() const noexcept { return count_.load(std::memory_order_acquire); }

  // Sleeps while it is `seen` and no advance is meant for `me`, at most until `until`. May return sooner.
  void await(Count seen, Instant until, Whom me) noexcept {
    // The kernel ends such a sleep by a clock of its own, which stands still while the machine is suspended.
    timespec end{};
    ::clock_gettime(CLOCK_MONOTONIC, &end);
    const auto now = BootClock::now();
    const auto left = until > now ? countable(until) - now : BootClock::duration{};
    const auto at = std::chrono::seconds{end.tv_sec} + std::chrono::nanoseconds{end.tv_nsec} + left;
    end.tv_sec = static_cast<std::time_t>(at / std::chrono::seconds{1});
    end.tv_nsec = static_cast<long>((at % std::chrono::seconds{1}).count());
    futex(FUTEX_WAIT_BITSET_PRIVATE, seen, &end, me);
  }

  void advance(Whom whom = everybody) noexcept {
    count_.fetch_add(1, std::memory_order_acq_rel);
    futex(FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, nullptr, whom);
  }

 private:
  // Whatever it answers, its caller looks for itself. It has no cause to fail, and errno stays as it was.
  void futex(int operation, std::uint32_t value, const timespec* end, Whom whom) noexcept {
    const int before = errno;
    ::syscall(SYS_futex, &count_, operation, value, end, nullptr, whom);
    errno = before;
  }

  static_assert(sizeof(std::atomic<Count>) == sizeof(std::uint32_t) && std::atomic<Count>::is_always_lock_free);
  std::atomic<Count> count_{0};
};

}  // namespace dlock
