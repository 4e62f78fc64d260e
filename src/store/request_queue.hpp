// Keeps those who want to share a statement in the order in which they came, the leader in front.
#pragma once

#include "store/batch_room.hpp"
#include "store/pending_request.hpp"
#include "types/mutant.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <string_view>

namespace dlock::store {

// Threads: one at a time.
template <class Operation>
class RequestQueue {
 public:
  using Request = PendingRequest<Operation>;
  using RequestPtr = std::shared_ptr<Request>;
  using Batch = typename Request::Batch;

  bool empty() const noexcept { return queue_.empty(); }
  std::size_t size() const noexcept { return queue_.size(); }
  const RequestPtr& leader() const noexcept { return queue_.front(); }

  // True: it is the first, and leads.
  bool push(const RequestPtr& request) {
    if (next_index_ == WakeGroup::capacity) {
      group_ = std::make_shared<WakeGroup>();
      next_index_ = 0;
    }
    queue_.push_back(request);
    request->join(group_, next_index_++);
    return queue_.size() == 1;
  }

  void remove(const Request& request) noexcept {
    std::erase_if(queue_, [&](const auto& other) { return other.get() == &request; });
  }

  // The leader leaves, and those behind it for whom there is room. `batch` has the leader already, and memory for all;
  // they are in the order of names, each once. The next one leads, and is to be woken: null where there is none.
  RequestPtr leave(Batch& batch, BatchRoom room) noexcept {
    const auto before = [](const auto& request, std::string_view name) { return request->name() < name; };
    queue_.pop_front();
    std::erase_if(queue_, [&](const auto& request) {
      if (!room.admits(request->kind(), request->deadline.at())) return false;
      auto place = std::lower_bound(batch.begin(), batch.end(), request->name(), before);
      if (place != batch.end() && (*place)->name() == request->name()) return false;
      if (planted("batch_unordered")) place = batch.end();
      request->leaves_queue(Request::State::sent);
      batch.insert(place, request);
      room.take(request->kind());
      return true;
    });
    if (queue_.empty()) return nullptr;
    queue_.front()->leaves_queue(Request::State::leads);
    return queue_.front();
  }

 private:
  std::deque<RequestPtr> queue_{};
  std::shared_ptr<WakeGroup> group_ = std::make_shared<WakeGroup>();  // of who is queued next
  int next_index_ = 0;
};

}  // namespace dlock::store
