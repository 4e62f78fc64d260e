// Which names were asked for in vain a moment ago, and how long that moment is. That a try reads first because of it:
// attempts.cpp.
#pragma once

#include "types/clock.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace dlock::engine {

// A memory that may forget, and may take one name for another: whoever asks it asks the database next.
// Threads: any. Allocates nothing.
class BusyCache {
 public:
  void note(std::string_view name, Instant now) noexcept {
    const auto hash = std::hash<std::string_view>{}(name);
    slot(hash).store(mark(hash, now), std::memory_order_relaxed);
  }
  // Whether it was noted less than `memory` ago.
  bool lately(std::string_view name, Instant now) const noexcept {
    const auto hash = std::hash<std::string_view>{}(name);
    const auto noted = slot(hash).load(std::memory_order_relaxed);
    const auto current = mark(hash, now);
    return noted >> time_bits == current >> time_bits &&
           ((current - noted) & times) < static_cast<std::uint64_t>(memory.count());
  }

  static constexpr std::chrono::milliseconds memory{1000};

 private:
  // The upper bits are of the name, the lower ones the milliseconds of the clock.
  static constexpr int time_bits = 24;
  static constexpr std::uint64_t times = (std::uint64_t{1} << time_bits) - 1;

  static std::uint64_t mark(std::size_t hash, Instant now) noexcept {
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
    return ((std::uint64_t{hash} | std::uint64_t{1} << 63) & ~times) | (static_cast<std::uint64_t>(time) & times);
  }
  std::atomic<std::uint64_t>& slot(std::size_t hash) noexcept { return slots_[hash % slots_.size()]; }
  const std::atomic<std::uint64_t>& slot(std::size_t hash) const noexcept { return slots_[hash % slots_.size()]; }

  std::array<std::atomic<std::uint64_t>, 64> slots_{};
};

}  // namespace dlock::engine
