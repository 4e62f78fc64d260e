// Which grant comes next by some instant, and how one that is gone leaves the middle of the queue.
#pragma once

#include "types/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace dlock::engine {

class Lease;

// Grants, the earliest first: a heap in which every grant knows its index, so that it leaves without being looked for.
// Threads: one at a time. Owns: a share of each grant in it. Allocates only to hold more grants than ever before.
class DeadlineQueue {
 public:
  // A grant can be in one deadline queue of each order.
  enum class SortedBy : std::size_t { earliest, latest, trust };
  static constexpr std::size_t kinds = 3;

  // Where a grant is in a deadline queue: its index in the heap, from 1 on; 0: it is not in it.
  using Index = std::uint32_t;

  explicit DeadlineQueue(SortedBy deadline) noexcept : sorted_by_(static_cast<std::size_t>(deadline)) {}
  DeadlineQueue(const DeadlineQueue&) = delete;
  DeadlineQueue& operator=(const DeadlineQueue&) = delete;

  bool empty() const noexcept { return heap_.empty(); }
  std::size_t size() const noexcept { return heap_.size(); }
  // When the first is due; without one never: Instant::max().
  Instant first() const noexcept { return heap_.empty() ? Instant::max() : heap_.front().at; }
  const std::shared_ptr<Lease>& front() const noexcept { return heap_.front().held; }
  bool has(const Lease& held) const noexcept;
  // All that are in it, in no order.
  std::vector<std::shared_ptr<Lease>> all() const;
  bool any(const std::function<bool(const Lease&)>& is) const;

  // So that one more is put in without asking for memory.
  void make_room();
  // Gives back what it has not needed for long. Not while grants are out that are to be put back.
  void shrink() noexcept;

  // Puts it in, or where it belongs now.
  void put(const std::shared_ptr<Lease>& held, Instant at);
  // Takes it out. Empty: it was not in it.
  std::shared_ptr<Lease> take(const Lease& held) noexcept;

 private:
  struct Entry {
    Instant at;
    std::shared_ptr<Lease> held;
  };

  void settle(std::size_t index) noexcept;
  bool rises(std::size_t index) noexcept;
  void set(std::size_t index, Entry&& entry) noexcept;

  const std::size_t sorted_by_;
  std::vector<Entry> heap_;
};

}  // namespace dlock::engine
