// How requests of many threads share a statement: who would have to wait for a connection anyway goes along with the
// next one that gets it. After LevelDB's queue of writers.
#pragma once

#include "store/pending_request.hpp"
#include "types/annotated_mutex.hpp"
#include "types/clock.hpp"
#include "types/failure.hpp"
#include "types/mutant.hpp"

#include <algorithm>
#include <array>
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
#include <tuple>
#include <utility>
#include <vector>

namespace dlock::store {

// What became of one of many: its answer, or what went wrong with it. Neither: it has to be sent alone.
template <class Result>
struct BatchResult {
  std::optional<Result> result{};
  std::optional<Failure> failure{};
  bool in_doubt = false;  // where it is sent alone: it may have been done
};

// How batches leave.
struct Pace {
  bool shared = false;            // of both kinds, and one after the other
  BootClock::duration company{};  // for so long at most a leader waits for those who are about to come
  BootClock::duration hung{};     // what is under way for so long is waited for no more
};

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

  // `most`: so many requests of a kind at most travel together.
  // `crowd`: how many asked at once, when something arrived last, of all who use the same connections.
  RequestBatcher(Operation operation, std::size_t most, std::atomic<std::size_t>& crowd)
      : operation_(std::move(operation)), most_(most), crowd_(crowd) {}
  RequestBatcher(const RequestBatcher&) = delete;
  RequestBatcher& operator=(const RequestBatcher&) = delete;

  // For those who have to wait for their turn, or had better.
  Result send(const View& view, Deadline deadline) {
    const auto own = std::make_shared<Request>(view, deadline);
    if (queue_up(own) || leads_after_wait(*own)) {
      auto [loan, batch, departed] = fill(own);
      Arrival arrival(*this, batch.size(), departed);
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
    return gathers_;
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

  static constexpr std::size_t kinds = 2;
  static constexpr int pause = 8;  // batches
  // A leader with less time than this takes nobody along: it would have to come back before the answer.
  static constexpr std::chrono::milliseconds shortest_batch{100};

  // What has left is under way until this ends. Those whose answers it had are likely to come back.
  class Arrival {
   public:
    Arrival(RequestBatcher& batcher, std::size_t requests, Instant departed)
        : batcher_(batcher), requests_(requests), departed_(departed) {}
    ~Arrival() { note(); }
    Arrival(const Arrival&) = delete;
    Arrival& operator=(const Arrival&) = delete;

    // Before those whose answers it has are woken, who may ask again at once.
    void note() noexcept {
      if (!std::exchange(noted_, true)) batcher_.arrived(requests_, departed_);
    }

   private:
    RequestBatcher& batcher_;
    const std::size_t requests_;
    const Instant departed_;
    bool noted_ = false;
  };
  void arrived(std::size_t requests, Instant departed) noexcept {
    RequestPtr gathers;
    {
      const MutexLock guard(mutex_);
      departures_.erase(std::ranges::find(departures_, departed));
      crowd_.store(requests + queue_.size(), std::memory_order_relaxed);
      if (gathers_) gathers = queue_.front();
    }
    if (gathers) gathers->wake();
  }

  // True: it is the first, and leads.
  bool queue_up(const RequestPtr& request) {
    RequestPtr gathers;
    {
      const MutexLock guard(mutex_);
      if (next_index_ == WakeGroup::capacity) {
        group_ = std::make_shared<WakeGroup>();
        next_index_ = 0;
      }
      queue_.push_back(request);
      request->join(group_, next_index_++);
      if (queue_.size() == 1) return true;
      if (gathers_ && (queue_.size() == most_ || has_company())) gathers = queue_.front();
    }
    if (gathers) gathers->wake();
    return false;
  }
  bool has_company() const REQUIRES(mutex_) {
    return planted("nobody_waited_for") || queue_.size() >= most_ ||
           8 * queue_.size() >= 7 * crowd_.load(std::memory_order_relaxed);
  }

  // Until what is under way has its answer, or seems to hang, and then until nearly all who had one have come back; or
  // not so long, also where there are enough for a batch.
  void gather(Request& leader, const Pace& pace) {
    const auto look = [&](auto holds) {
      return [this, holds] {
        const MutexLock guard(mutex_);
        return holds();
      };
    };
    // A quarter of its time at most: the rest is for the batch.
    const auto now = BootClock::now();
    const auto latest = later(now, (leader.deadline.at() - now) / 4);
    const auto hung = planted("hung_waited_for") ? BootClock::duration::max() : pace.hung;
    leader.wait_while(look([&]() REQUIRES(mutex_) { return queue_.size() < most_ && awaits_any(hung); }),
                      std::min(last_departure(hung), latest));
    if (expects_others()) {
      leader.wait_while(look([this]() REQUIRES(mutex_) { return !has_company(); }),
                        std::min(later(BootClock::now(), pace.company), latest));
      const MutexLock guard(mutex_);
      if (2 * queue_.size() < crowd_.load(std::memory_order_relaxed)) lonely_ = pause;
    }
  }
  // Whether something is under way, and not for so long yet.
  bool awaits_any(BootClock::duration hung) const REQUIRES(mutex_) {
    if (planted("hung_waited_for_again")) return !departures_.empty();
    const auto now = BootClock::now();
    return std::ranges::any_of(departures_, [&](auto each) { return later(each, hung) > now; });
  }
  // So long after the last one left.
  Instant last_departure(BootClock::duration length) const {
    const MutexLock guard(mutex_);
    return departures_.empty() ? Instant::min() : later(departures_.back(), length);
  }
  // Not for a while where few came the last time.
  bool expects_others() {
    const MutexLock guard(mutex_);
    if (lonely_ == 0) return true;
    --lonely_;
    return false;
  }
  // There is one leader at a time.
  void reserve_departure(bool gathers) {
    const MutexLock guard(mutex_);
    departures_.reserve(departures_.size() + 1);
    gathers_ = gathers;
  }
  void end_gathering() {
    const MutexLock guard(mutex_);
    gathers_ = false;
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
  std::tuple<typename Operation::Loan, Batch, Instant> fill(const RequestPtr& leader) {
    Batch batch;
    const auto pace = operation_.pace();
    auto loan = [&] {
      try {
        batch.reserve(kinds * most_);
        batch.push_back(leader);
        reserve_departure(pace.shared);
        if (pace.shared) gather(*leader, pace);
        end_gathering();
        return operation_.borrow(leader->deadline);
      } catch (...) {
        leave_queue(batch, {}, std::nullopt);
        throw;
      }
    }();
    const auto deadline = leader->deadline.at();
    const auto now = BootClock::now();
    const auto left = deadline - now;
    Room room{};
    if (operation_.is_open(loan) && left >= shortest_batch && !leader->deadline.stopped()) {
      room.of_kind[leader->kind()] = {most_ - 1, deadline - left / 4};
      // Of another kind are those who may have much less time, and no leader who may be told to stop.
      const auto enough = std::max<BootClock::duration>(pace.hung, shortest_batch);
      if (pace.shared && operation_.promptly(loan, leader->deadline).at() - now >= enough &&
          !leader->deadline.stop().stop_possible())
        room.of_kind[1 - leader->kind()] = {planted("kinds_share_room") ? 0 : most_, later(now, enough)};
    }
    leave_queue(batch, room, now);
    return {std::move(loan), std::move(batch), now};
  }

  // How many of each kind may come along, and until when they must be able to wait.
  struct Room {
    struct Kind {
      std::size_t requests = 0;
      Instant latest{};
    };
    std::array<Kind, kinds> of_kind{};
  };

  // The leader, and those behind it for whom there is room: in the order of names, each once. The memory is reserved.
  // `departs`: when; empty: it has failed, and nobody goes.
  void leave_queue(Batch& batch, Room room, std::optional<Instant> departs) noexcept {
    const auto before = [](const auto& request, std::string_view name) { return request->name() < name; };
    RequestPtr next;
    {
      const MutexLock guard(mutex_);
      queue_.pop_front();
      if (departs) departures_.push_back(*departs);
      std::erase_if(queue_, [&](const auto& request) {
        auto& left = room.of_kind[request->kind()];
        if (left.requests == 0 || request->deadline.at() < left.latest) return false;
        auto place = std::lower_bound(batch.begin(), batch.end(), request->name(), before);
        if (place != batch.end() && (*place)->name() == request->name()) return false;
        if (planted("batch_unordered")) place = batch.end();
        request->leaves_queue(State::sent);
        batch.insert(place, request);
        --left.requests;
        return true;
      });
      if (!queue_.empty()) {
        next = queue_.front();
        next->leaves_queue(State::leads);
      }
    }
    if (next) next->wake();
  }

  void send_together(const Batch& batch, typename Operation::Loan loan, Deadline deadline, Arrival& arrival) {
    batches_.fetch_add(1, std::memory_order_relaxed);
    batched_.fetch_add(batch.size(), std::memory_order_relaxed);
    under_way_.fetch_add(batch.size() - 1, std::memory_order_relaxed);
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
    complete(batch, arrival, [&](Request& request) {
      auto& one = *outcome++;
      request.in_doubt = one.in_doubt;
      if (one.failure) request.answer(*one.failure);
      else request.answer(one.result);
    });
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
    under_way_.fetch_sub(batch.size() - 1, std::memory_order_relaxed);
    Request::complete(batch, give);
  }

  Operation operation_;
  const std::size_t most_;
  std::atomic<std::size_t>& crowd_;
  std::atomic<std::size_t> under_way_{0};
  std::atomic<std::uint64_t> batches_{0}, batched_{0};
  mutable AnnotatedMutex mutex_;
  std::deque<RequestPtr> queue_ GUARDED_BY(mutex_);
  std::shared_ptr<WakeGroup> group_ GUARDED_BY(mutex_) = std::make_shared<WakeGroup>();  // of who is queued next
  int next_index_ GUARDED_BY(mutex_) = 0;
  std::vector<Instant> departures_ GUARDED_BY(mutex_){};  // of what has not arrived
  bool gathers_ GUARDED_BY(mutex_) = false;               // the leader waits for others
  std::atomic<int> lonely_{0};  // so many batches more nobody is waited for: few came the last time
};

}  // namespace dlock::store
