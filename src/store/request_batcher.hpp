// How requests of many threads share a statement: who would have to wait for a connection anyway goes along with the
// next one that gets it. After LevelDB's queue of writers.
#pragma once

#include "store/pending_request.hpp"
#include "types/annotated_mutex.hpp"
#include "types/clock.hpp"
#include "types/failure.hpp"
#include "types/mutant.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::store {

// The first in the queue (the leader) waits for its turn. When it has it, it takes along those behind it, at most one
// for each name, and the next of the rest leads. There is no timer: nobody waits for anything but its turn. A batch is
// sent by its leader's thread, as long as the leader's deadline allows; each of the others is back by its own, and who
// has much less time than the leader is left for the next one.
//
// Operation says what is sent, and how:
//   View     a request, as its caller has it;  Kept  a copy of one, with view();  Result  its answer;
//   Loan     a connection, or the room for one
//   std::string_view name(const View&)
//   Loan borrow(Deadline)                                       waits for its turn; throws Failure
//   Failure none_lent()                                         that none came in time, and why
//   bool is_open(const Loan&)                                   false: what comes with it is best sent alone
//   Result alone(const View&, Loan, Deadline)                   throws Failure
//   std::vector<std::optional<Result>> together(std::span<const View>, Loan, Deadline)
//                                                               in the order of names; an empty one has to be sent
//                                                               alone
//   bool may_be_of_one(const Failure&)                          of such a batch: each of them is sent alone then
//   bool leaves_open(const Result&)                             whether what has been asked for before is done
//
// Threads: any. Fails: as the operation does; a failure that is about one of many alone makes each be sent alone.
template <class Operation>
class RequestBatcher {
 public:
  using View = typename Operation::View;
  using Result = typename Operation::Result;

  // `most`: so many requests at most in one statement.
  RequestBatcher(Operation operation, std::size_t most) : operation_(std::move(operation)), most_(most) {}
  RequestBatcher(const RequestBatcher&) = delete;
  RequestBatcher& operator=(const RequestBatcher&) = delete;

  // For those who have to wait for their turn.
  Result send(const View& view, Deadline deadline) {
    const auto own = std::make_shared<Request>(view, deadline);
    if (queue_up(own) || leads_after_wait(*own)) {
      auto [loan, batch] = fill(own);
      if (batch.size() == 1) return operation_.alone(view, std::move(loan), deadline);
      send_together(batch, std::move(loan), deadline);
    }
    auto answer = own->take_answer();
    return answer ? std::move(*answer) : alone_after(*own, view, deadline);
  }

  // How many wait to be taken along, and whether one waits in front of them; how many are under way with its request.
  std::size_t queued() const {
    const MutexLock guard(mutex_);
    return queue_.empty() ? 0 : queue_.size() - 1;
  }
  bool led() const {
    const MutexLock guard(mutex_);
    return !queue_.empty();
  }
  std::size_t under_way() const noexcept { return under_way_.load(std::memory_order_relaxed); }
  // How many statements have carried several requests, and how many requests those were.
  std::uint64_t batches() const noexcept { return batches_.load(std::memory_order_relaxed); }
  std::uint64_t batched() const noexcept { return batched_.load(std::memory_order_relaxed); }

 private:
  using Request = PendingRequest<Operation>;
  using RequestPtr = std::shared_ptr<Request>;
  using Batch = typename Request::Batch;
  using State = typename Request::State;

  // A leader with less time than this takes nobody along: it would have to come back before the answer.
  static constexpr std::chrono::milliseconds shortest_batch{100};

  // True: it is the first, and leads.
  bool queue_up(const RequestPtr& request) {
    const MutexLock guard(mutex_);
    if (next_index_ == WakeGroup::capacity) {
      group_ = std::make_shared<WakeGroup>();
      next_index_ = 0;
    }
    queue_.push_back(request);
    request->join(group_, next_index_++);
    return queue_.size() == 1;
  }

  // False: it was taken along, and has its answer. Throws Failure when its time is up.
  bool leads_after_wait(Request& request) {
    request.wait();
    if (request.waits()) {
      const MutexLock guard(mutex_);
      if (request.state() == State::sent)
        throw Failure(Cause::timed_out, "no answer in time, to many requests in one", {}, true);
      if (request.state() == State::queued) {
        std::erase_if(queue_, [&](const auto& other) { return other.get() == &request; });
        throw operation_.none_lent();
      }
    }
    return request.state() == State::leads;
  }

  // The turn of the leader, and who goes with it: itself at least. However that ends, the next one leads.
  std::pair<typename Operation::Loan, Batch> fill(const RequestPtr& leader) {
    Batch batch;
    auto loan = [&] {
      try {
        batch.reserve(most_);
        batch.push_back(leader);
        return operation_.borrow(leader->deadline);
      } catch (...) {
        leave_queue(batch, 0, {});
        throw;
      }
    }();
    const auto deadline = leader->deadline.at();
    const auto left = deadline - BootClock::now();
    const bool alone = !operation_.is_open(loan) || left < shortest_batch;
    leave_queue(batch, alone ? 1 : most_, deadline - left / 4);
    return {std::move(loan), std::move(batch)};
  }

  // The leader, and those behind it that can wait until `latest`, while the batch is less than `most`: in the order of
  // names, each once. There is room reserved.
  void leave_queue(Batch& batch, std::size_t most, Instant latest) noexcept {
    const auto before = [](const auto& request, std::string_view name) { return request->name() < name; };
    RequestPtr next;
    {
      const MutexLock guard(mutex_);
      queue_.pop_front();
      std::erase_if(queue_, [&](const auto& request) {
        if (batch.size() >= most || request->deadline.at() < latest) return false;
        auto place = std::lower_bound(batch.begin(), batch.end(), request->name(), before);
        if (place != batch.end() && (*place)->name() == request->name()) return false;
        if (planted("batch_unordered")) place = batch.end();
        request->leaves_queue(State::sent);
        batch.insert(place, request);
        return true;
      });
      if (!queue_.empty()) {
        next = queue_.front();
        next->leaves_queue(State::leads);
      }
    }
    if (next) next->wake();
  }

  void send_together(const Batch& batch, typename Operation::Loan loan, Deadline deadline) {
    batches_.fetch_add(1, std::memory_order_relaxed);
    batched_.fetch_add(batch.size(), std::memory_order_relaxed);
    under_way_.fetch_add(batch.size() - 1, std::memory_order_relaxed);
    std::vector<std::optional<Result>> results;
    try {
      std::vector<View> views;
      views.reserve(batch.size());
      for (const auto& request : batch) views.push_back(request->kept.view());
      results = operation_.together(views, std::move(loan), deadline);
    } catch (const Failure& failure) {
      const bool may_be_of_one = operation_.may_be_of_one(failure);
      return complete(batch, [&](Request& request) {
        if (may_be_of_one) request.in_doubt = failure.may_have_run();
        else request.answer(failure);
      });
    } catch (...) {
      return complete(batch, [](Request& request) { request.answer(std::current_exception()); });
    }
    auto result = results.begin();
    complete(batch, [&](Request& request) { request.answer(*result++); });
  }

  // Who may have got by its batch what it asks for is not told that nothing was done.
  Result alone_after(const Request& request, const View& view, Deadline deadline) {
    const bool in_doubt = request.in_doubt && !planted("failed_batch_forgotten");
    try {
      auto result = operation_.alone(view, operation_.borrow(deadline), deadline);
      if (!in_doubt || !Operation::leaves_open(result)) return result;
      throw Failure(Cause::locked, "the row that was asked for in a batch that failed is locked");
    } catch (const Failure& failure) {
      if (!in_doubt) throw;
      throw Failure(failure.cause(), failure.what(), failure.code(), true);
    }
  }

  template <class Give>
  void complete(const Batch& batch, Give give) {
    under_way_.fetch_sub(batch.size() - 1, std::memory_order_relaxed);
    Request::complete(batch, give);
  }

  Operation operation_;
  const std::size_t most_;
  std::atomic<std::size_t> under_way_{0};
  std::atomic<std::uint64_t> batches_{0}, batched_{0};
  mutable AnnotatedMutex mutex_;
  std::deque<RequestPtr> queue_ GUARDED_BY(mutex_);
  std::shared_ptr<WakeGroup> group_ GUARDED_BY(mutex_) = std::make_shared<WakeGroup>();  // of who is queued next
  int next_index_ GUARDED_BY(mutex_) = 0;
};

}  // namespace dlock::store
