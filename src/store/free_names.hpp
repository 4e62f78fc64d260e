// Which names are likely to be there and free when they are asked for.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace dlock::store {

// Those that were freed here twice, and not found taken since: a row that is made is fit for the short way only once it
// was taken over (see served_ticket in mysql/lock.sql). A memory that may forget, and may take one name for another.
// Threads: any. Allocates nothing.
class FreeNames {
 public:
  void freed(std::string_view name) noexcept {
    const auto tag = tag_of(name);
    auto& slot = slot_of(tag);
    const auto noted = slot.load(std::memory_order_relaxed);
    slot.store((noted | twice) == (tag | twice) ? tag | twice : tag, std::memory_order_relaxed);
  }
  // It was asked for, and was not free.
  void taken(std::string_view name) noexcept {
    const auto tag = tag_of(name);
    auto& slot = slot_of(tag);
    if ((slot.load(std::memory_order_relaxed) | twice) == (tag | twice)) slot.store(0, std::memory_order_relaxed);
  }
  bool likely(std::string_view name) const noexcept {
    const auto tag = tag_of(name);
    return slots_[tag / 2 % slots_.size()].load(std::memory_order_relaxed) == (tag | twice);
  }

 private:
  static constexpr std::uint64_t twice = 1;

  // Never 0, and even.
  static std::uint64_t tag_of(std::string_view name) noexcept {
    return (std::uint64_t{std::hash<std::string_view>{}(name)} | std::uint64_t{1} << 63U) & ~twice;
  }
  std::atomic<std::uint64_t>& slot_of(std::uint64_t tag) noexcept { return slots_[tag / 2 % slots_.size()]; }

  std::array<std::atomic<std::uint64_t>, 1024> slots_{};
};

}  // namespace dlock::store
