// Which names are likely to be there and free when they are asked for: those that were freed here twice, and not found
// taken since. How many are remembered.
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
// Names that meet in one place of it must not drive each other out, or nearly every batch would need a second statement
// for them: so a set has room for several.
// Threads: any. Allocates nothing.
class FreeNames {
 public:
  void freed(std::string_view name) noexcept {
    const auto tag = tag_of(name);
    auto& set = set_of(tag);
    for (auto& slot : set)
      if (is_of(slot, tag)) return slot.store(tag | twice, std::memory_order_relaxed);
    for (auto& slot : set)
      if (slot.load(std::memory_order_relaxed) == 0) return slot.store(tag, std::memory_order_relaxed);
    // In the place of one that was freed once, if there is one, of another one each time: who comes back keeps its
    // place.
    static thread_local std::size_t first = 0;
    ++first;
    for (std::size_t i = 0; i < set.size(); ++i) {
      auto& slot = set[(first + i) % set.size()];
      if ((slot.load(std::memory_order_relaxed) & twice) == 0) return slot.store(tag, std::memory_order_relaxed);
    }
    set[first % set.size()].store(tag, std::memory_order_relaxed);
  }
  // It was asked for, and was not free.
  void taken(std::string_view name) noexcept {
    const auto tag = tag_of(name);
    for (auto& slot : set_of(tag))
      if (is_of(slot, tag)) slot.store(0, std::memory_order_relaxed);
  }
  bool likely(std::string_view name) const noexcept {
    const auto tag = tag_of(name);
    for (const auto& slot : sets_[tag / 2 % sets])
      if (slot.load(std::memory_order_relaxed) == (tag | twice)) return true;
    return false;
  }

 private:
  using Slot = std::atomic<std::uint64_t>;
  using Set = std::array<Slot, 4>;
  static constexpr std::uint64_t twice = 1;
  static constexpr std::size_t sets = 1024;

  // Never 0, and even.
  static std::uint64_t tag_of(std::string_view name) noexcept {
    return (std::uint64_t{std::hash<std::string_view>{}(name)} | std::uint64_t{1} << 63U) & ~twice;
  }
  static bool is_of(const Slot& slot, std::uint64_t tag) noexcept {
    return (slot.load(std::memory_order_relaxed) | twice) == (tag | twice);
  }
  Set& set_of(std::uint64_t tag) noexcept { return sets_[tag / 2 % sets]; }

  alignas(64) std::array<Set, sets> sets_{};
};

}  // namespace dlock::store
