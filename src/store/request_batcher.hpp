// How requests of many threads share a statement: who would have to wait for a connection anyway goes along with the
// next one that gets it; and what each is told when that fails. Who may: batch_room.hpp. After LevelDB's queue of
// writers.
#pragma once

#include "store/batch_room.hpp"
#include "store/batch_window.hpp"
#include "store/pending_request.hpp"
#include "store/request_queue.hpp"
#include "types/annotated_mutex.hpp"
#include "types/clock.hpp"
#include "types/failure.hpp"
#include "types/mutant.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace dlock::store {

// The first in the queue (the leader) waits for its turn. When it has it, it takes along those behind it, at most one
// for each name, and the next of the rest leads. A batch is of the leader's kind. It is sent by its leader's thread, as
// long as the leader's deadline allows; each of the others is back by its own, and who has much less time than the
// leader is left for the next one.
//
// Where batches are so slow that one which is fuller is worth some waiting (see Pace), it is of both kinds, one leaves
// after the other, and its leader gives those who have just had their answers the time to come back.
//
// Operation says what is sent, and how:
//   View     a request, as its caller has it;  Kept  a copy of one, with view();  Result  its answer;
//   Loan     a connection, or the room for one
//   std::string_view name(const View&)
//   std::size_t kind(const View&)                               0 or 1: a batch has at most so many of each
//   Pace pace()
//   Loan borrow(Deadline)                                       waits for its turn; throws Failure
//   Failure none_lent()                                         that none came in time, and why
//   bool is_open(const Loan&)                                   false: what comes with it is best sent alone
//   Deadline promptly(const Loan&, Deadline)                    what of its time a request may take there
//   Result alone(const View&, Loan, Deadline)                   throws Failure
//   std::vector<BatchResult<Result>> together(std::span<const View>, Loan, Deadline)
//                                                               in the order of names; throws Failure, which is that
//                                                               of all
//   bool may_be_of_one(const View&, const Failure&)             of such a batch: it is sent alone then
//   bool leaves_open(const Result&)                             whether what has been asked for before is done
//
// Threads: any. Fails: as the operation does; a failure that is about one of many alone makes each be sent alone.
template <class Operation>
class RequestBatcher {
 public:
  using View = typename Operation::View;
  using Result = typename Operation::Result;

  // `most`: so many requests of a kind at most travel together. `crowd`: see BatchWindow.
  RequestBatcher(Operation operation, std::size_t most, std::atomic<std::size_t>& crowd)
      : operation_(std::move(operation)), most_(most), window_(most, crowd) {}
  RequestBatcher(const RequestBatcher&) = delete;
  RequestBatcher& operator=(const RequestBatcher&) = delete;

  // For those who have to wait for their turn, or had better.
  Result send(const View& view, Deadline deadline) {
    const auto own = std::make_shared<Request>(view, deadline);
    if (queue_up(own) || leads_after_wait(*own)) {
      auto [loan, batch, departed] = fill(own);
      Arrival arrival(*this, departed);
      if (batch.size() == 1) return operation_.alone(view, std::move(loan), deadline);
      send_together(batch, std::move(loan), deadline, arrival);
    }
    auto answer = own->take_answer();
    return answer ? std::move(*answer) : alone_after(*own, view, deadline);
  }

  // How many wait to be taken along; whether one waits in front of them, or for more of them; how many are under way
  // with its request.
  std::size_t queued() const {
    const MutexLock guard(mutex_);
    return queue_.empty() ? 0 : queue_.size() - 1;
  }
  bool led() const {
    const MutexLock guard(mutex_);
    return !queue_.empty();
  }
  bool gathers() const {
    const MutexLock guard(mutex_);
    return window_.is_open();
  }
  std::size_t under_way() const {
    const MutexLock guard(mutex_);
    return window_.under_way();
  }
  // How many statements have carried several requests, and how many requests those were.
  std::uint64_t batches() const noexcept { return batches_.load(std::memory_order_relaxed); }
  std::uint64_t batched() const noexcept { return batched_.load(std::memory_order_relaxed); }

 private:
  using Request = PendingRequest<Operation>;
  using RequestPtr = std::shared_ptr<Request>;
  using Batch = typename Request::Batch;
  using State = typename Request::State;
  using Loan = typename Operation::Loan;

  // What has left is under way until this ends.
  class Arrival {
   public:
    Arrival(RequestBatcher& batcher, Instant departed) : batcher_(batcher), departed_(departed) {}
    ~Arrival() { note(); }
    Arrival(const Arrival&) = delete;
    Arrival& operator=(const Arrival&) = delete;

    // Before those whose answers it has are woken, who may ask again at once.
    void note() noexcept {
      if (!std::exchange(noted_, true)) batcher_.arrived(departed_);
    }

   private:
    RequestBatcher& batcher_;
    const Instant departed_;
    bool noted_ = false;
  };
  void arrived(Instant departed) noexcept {
    RequestPtr waits;
    {
      const MutexLock guard(mutex_);
      window_.arrived(departed, queue_.size());
      if (window_.is_open()) waits = queue_.leader();
    }
    if (waits) waits->wake();
  }

  // True: it is the first, and leads.
  bool queue_up(const RequestPtr& request) {
    RequestPtr waits;
    {
      const MutexLock guard(mutex_);
      if (queue_.push(request)) return true;
      if (window_.is_open() && window_.suffice(queue_.size())) waits = queue_.leader();
    }
    if (waits) waits->wake();
    return false;
  }

  // False: it was taken along, and has its answer. Throws Failure when its time is up.
  bool leads_after_wait(Request& request) {
    request.wait();
    if (request.waits()) {
      const MutexLock guard(mutex_);
      if (request.state() == State::sent)
        throw Failure(Cause::timed_out, "no answer in time, to many requests in one", {}, true);
      if (request.state() == State::queued) {
        queue_.remove(request);
        throw operation_.none_lent();
      }
    }
    return request.state() == State::leads;
  }

  // The turn of the leader, and who goes with it: itself at least. However that ends, the next one leads.
  std::tuple<Loan, Batch, Instant> fill(const RequestPtr& leader) {
    Batch batch;
    const auto pace = operation_.pace();
    auto loan = [&] {
      try {
        batch.reserve(BatchRoom::kinds * most_);
        batch.push_back(leader);
        wait_for_others(*leader, pace);
        return operation_.borrow(leader->deadline);
      } catch (...) {
        leave_queue(batch, {}, std::nullopt);
        throw;
      }
    }();
    const auto now = BootClock::now();
    leave_queue(batch, room(*leader, pace, loan, now), now);
    return {std::move(loan), std::move(batch), now};
  }
  void wait_for_others(Request& leader, const Pace& pace) {
    {
      const MutexLock guard(mutex_);
      window_.open(pace, BootClock::now(), leader.deadline.at());
      if (!window_.is_open()) return;
    }
    const auto closes_at = [&] {
      const MutexLock guard(mutex_);
      return window_.closes_at(queue_.size(), BootClock::now());
    };
    while (closes_at() != Instant::min() && !leader.deadline.passed()) leader.wait_until(closes_at);
    const MutexLock guard(mutex_);
    window_.close();
  }
  BatchRoom room(const Request& leader, const Pace& pace, const Loan& loan, Instant now) const {
    if (!operation_.is_open(loan)) return {};
    const auto promptly = operation_.promptly(loan, leader.deadline).at();
    return {leader.kind(), pace, leader.deadline, promptly, most_, now};
  }
  // `departs`: when; empty: it has failed, and nobody goes.
  void leave_queue(Batch& batch, BatchRoom room, std::optional<Instant> departs) noexcept {
    RequestPtr next;
    {
      const MutexLock guard(mutex_);
      next = queue_.leave(batch, room);
      window_.close();
      if (departs) window_.leaves(*departs, batch.size());
    }
    if (next) next->wake();
  }

  void send_together(const Batch& batch, Loan loan, Deadline deadline, Arrival& arrival) {
    batches_.fetch_add(1, std::memory_order_relaxed);
    batched_.fetch_add(batch.size(), std::memory_order_relaxed);
    std::vector<BatchResult<Result>> outcomes;
    try {
      std::vector<View> views;
      views.reserve(batch.size());
      for (const auto& request : batch) views.push_back(request->kept.view());
      outcomes = operation_.together(views, std::move(loan), deadline);
    } catch (const Failure& failure) {
      return complete(batch, arrival, [&](Request& request) {
        if (operation_.may_be_of_one(request.kept.view(), failure)) request.in_doubt = failure.may_have_run();
        else request.answer(failure);
      });
    } catch (...) {
      return complete(batch, arrival, [](Request& request) { request.answer(std::current_exception()); });
    }
    auto outcome = outcomes.begin();
    complete(batch, arrival, [&](Request& request) { request.answer(*outcome++); });
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
  void complete(const Batch& batch, Arrival& arrival, Give give) {
    arrival.note();
    Request::complete(batch, give);
  }

  Operation operation_;
  const std::size_t most_;
  std::atomic<std::uint64_t> batches_{0}, batched_{0};
  mutable AnnotatedMutex mutex_;
  RequestQueue<Operation> queue_ GUARDED_BY(mutex_);
  BatchWindow window_ GUARDED_BY(mutex_);
};

}  // namespace dlock::store
