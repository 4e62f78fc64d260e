// How the heap of a deadline queue is kept in order.
#include "engine/lease/deadline_queue.hpp"

#include "engine/lease/lease.hpp"

#include <algorithm>
#include <utility>

namespace dlock::engine {
namespace {

constexpr std::size_t few = 64;  // room for so many grants is not given back

}  // namespace

bool DeadlineQueue::has(const Lease& held) const noexcept { return held.heap_indexes[sorted_by_] != 0; }

std::vector<std::shared_ptr<Lease>> DeadlineQueue::all() const {
  std::vector<std::shared_ptr<Lease>> grants;
  grants.reserve(heap_.size());
  for (const auto& entry : heap_) grants.push_back(entry.held);
  return grants;
}

bool DeadlineQueue::any(const std::function<bool(const Lease&)>& is) const {
  return std::ranges::any_of(heap_, [&](const Entry& entry) { return is(*entry.held); });
}

void DeadlineQueue::set(std::size_t index, Entry&& entry) noexcept {
  entry.held->heap_indexes[sorted_by_] = static_cast<Index>(index + 1);
  heap_[index] = std::move(entry);
}

// By a half at a time: twice as much would be room for as many again.
void DeadlineQueue::make_room() {
  if (heap_.size() == heap_.capacity()) heap_.reserve(heap_.size() + heap_.size() / 2 + few);
}

void DeadlineQueue::shrink() noexcept {
  if (heap_.capacity() > 4 * (heap_.size() + few)) heap_.shrink_to_fit();
}

void DeadlineQueue::put(const std::shared_ptr<Lease>& held, Instant at) {
  std::size_t index = held->heap_indexes[sorted_by_];
  if (index == 0) {
    make_room();
    heap_.push_back({at, held});
    index = heap_.size();
    held->heap_indexes[sorted_by_] = static_cast<Index>(index);
  } else {
    heap_[index - 1].at = at;
  }
  settle(index - 1);
}

std::shared_ptr<Lease> DeadlineQueue::take(const Lease& held) noexcept {
  const std::size_t index = held.heap_indexes[sorted_by_];
  if (index == 0) return nullptr;
  auto taken = std::move(heap_[index - 1].held);
  taken->heap_indexes[sorted_by_] = 0;
  auto last = std::move(heap_.back());
  heap_.pop_back();
  if (index <= heap_.size()) {
    set(index - 1, std::move(last));
    settle(index - 1);
  }
  return taken;
}

// Moves the entry up or down to where it belongs.
void DeadlineQueue::settle(std::size_t index) noexcept {
  if (rises(index)) return;
  auto entry = std::move(heap_[index]);
  for (;;) {
    auto child = 2 * index + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1].at < heap_[child].at) ++child;
    if (entry.at <= heap_[child].at) break;
    set(index, std::move(heap_[child]));
    index = child;
  }
  set(index, std::move(entry));
}

bool DeadlineQueue::rises(std::size_t index) noexcept {
  const auto begun = index;
  auto entry = std::move(heap_[index]);
  for (; index > 0; index = (index - 1) / 2) {
    auto& parent = heap_[(index - 1) / 2];
    if (parent.at <= entry.at) break;
    set(index, std::move(parent));
  }
  set(index, std::move(entry));
  return index != begun;
}

}  // namespace dlock::engine
