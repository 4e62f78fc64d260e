// How requests of many threads travel together: who would have to wait for a connection anyway goes along
// with the next one that gets it.
#pragma once

#include "types/annotated_mutex.hpp"
#include "types/clock.hpp"
#include "types/event_count.hpp"
#include "types/failure.hpp"
#include "types/mutant.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::store {

// The one in front (the leader) waits for its turn, while all that come after it queue up. When it has it, it takes along
// those that are there, at most one for each name, and the next of the rest leads. There is no timer: nobody waits for
// anything but its turn. Those that travel together are sent by the leader's thread, as long as the leader's deadline
// allows; each of the others is back by its own, and who has much less time than the leader is left for the next one.
//
// Trip says what is sent, and how:
//   View     a request, as its caller has it;  Kept  a copy of one, with view();  Result  its answer;  Turn  a turn
//   std::string_view name(const View&)
//   Turn turn(Deadline)                                         waits for it; throws Failure
//   Failure no_turn()                                           that none came in time, and why
//   bool is_open(const Turn&)                                   false: what comes with it is best sent alone
//   Result alone(const View&, Turn, Deadline)                   throws Failure
//   std::vector<std::optional<Result>> together(std::span<const View>, Turn, Deadline)
//                                                               in the order of names; an empty one has to be sent alone
//   bool may_be_of_one(const Failure&)                          of such a batch: each of them is sent alone then
//
// Threads: any. Fails: as the trip does; a failure that is about one of many alone makes each of them be sent alone.
template <class Trip>
class RequestBatcher {
 public:
  using View = typename Trip::View;
  using Result = typename Trip::Result;

  // `most`: so many requests at most travel together.
  RequestBatcher(Trip trip, std::size_t most) : trip_(std::move(trip)), most_(most) {}
  RequestBatcher(const RequestBatcher&) = delete;
  RequestBatcher& operator=(const RequestBatcher&) = delete;

  // For those who have to wait for their turn.
  Result send(const View& view, Deadline deadline) {
    const auto request = enlist(view, deadline);
    if (!request || wait(*request)) return lead(view, deadline);
    if (request->defect) std::rethrow_exception(request->defect);
    if (request->failure) throw same(*request->failure);
    if (request->result) return std::move(*request->result);
    return alone(view, deadline, request->in_doubt);
  }

  // How many wait to be taken along, and whether one waits in front of them.
  std::size_t queued() const {
    const MutexLock guard(mutex_);
    return queue_.size();
  }
  // How many are under way with a leader's request.
  std::size_t under_way() const noexcept { return under_way_.load(std::memory_order_relaxed); }
  // How many statements have carried several requests, and how many requests those were.
  std::uint64_t batches() const noexcept { return batches_.load(std::memory_order_relaxed); }
  std::uint64_t batched() const noexcept { return batched_.load(std::memory_order_relaxed); }
  bool led() const {
    const MutexLock guard(mutex_);
    return led_;
  }

 private:
  // A leader with less time than this takes nobody along: it would have to come back before the answer.
  static constexpr std::chrono::milliseconds shortest_flight{100};

  // That of the batcher of a Group, which guards it.
  static constexpr MutexKind queue_mutex{};

  // Some that queue up one after another, each with a bit of its own: one wake is enough for those of a batch.
  struct Group {
    EventCount news;
    int joined GUARDED_BY(queue_mutex) = 0;
  };
  using GroupPtr = std::shared_ptr<Group>;

  // One that waits. What it asks is copied, since its caller may go before the answer comes.
  struct PendingRequest {
    PendingRequest(const View& view, Deadline its_deadline) : kept(view), deadline(its_deadline) {}
    const typename Trip::Kept kept;
    const Deadline deadline;
    // Set once, by its own thread, before it queues up:
    GroupPtr group{};
    EventCount::Whom me = 0;
    // queued is left with mutex_ held.
    enum class State { queued, leads, sent, completed };
    std::atomic<State> state{State::queued};
    // Written by who leads the batch, before it is completed:
    std::optional<Result> result{};
    std::optional<Failure> failure{};
    std::exception_ptr defect{};  // none of the three: to be sent alone
    bool in_doubt = false;        // to be sent alone, and the batch that has failed may have done it
    bool woken = false;           // the leader's own
  };
  using State = typename PendingRequest::State;
  using Batch = std::vector<std::shared_ptr<PendingRequest>>;

  static std::string_view name_of(const PendingRequest& request) { return Trip::name(request.kept.view()); }

  // Empty: there is nobody in front, and the caller leads.
  std::shared_ptr<PendingRequest> enlist(const View& view, Deadline deadline) {
    {
      const MutexLock guard(mutex_);
      if (!std::exchange(led_, true)) return nullptr;
    }
    auto request = std::make_shared<PendingRequest>(view, deadline);
    const MutexLock guard(mutex_, queue_mutex);
    if (!std::exchange(led_, true)) return nullptr;
    if (group_->joined == std::numeric_limits<EventCount::Whom>::digits) group_ = std::make_shared<Group>();
    request->group = group_;
    request->me = EventCount::Whom{1} << group_->joined++;
    queue_.push_back(request);
    return request;
  }

  // True: it leads now. False: it was taken along, and is back.
  bool wait(PendingRequest& request) {
    auto& news = request.group->news;
    const std::stop_callback stopped(request.deadline.stop(), [&] { news.advance(request.me); });
    const auto there = [&] {
      const auto state = request.state.load(std::memory_order_acquire);
      return state == State::leads || state == State::completed;
    };
    while (true) {
      const auto seen = news.read();
      if (there()) return request.state == State::leads;
      if (request.deadline.passed()) break;
      news.await(seen, request.deadline.at(), request.me);
    }
    const MutexLock guard(mutex_);
    switch (request.state.load(std::memory_order_acquire)) {
      case State::leads: return true;
      case State::completed: return false;
      case State::sent: throw Failure(Cause::timed_out, "no answer in time, to many requests in one", {}, true);
      case State::queued: break;
    }
    std::erase_if(queue_, [&](const auto& other) { return other.get() == &request; });
    throw trip_.no_turn();
  }

  // Hands the lead to the first in the queue, however the leader ends.
  class Lead {
   public:
    explicit Lead(RequestBatcher& batcher) : batcher_(batcher) {}
    ~Lead() {
      if (!given_) pass_on({});
    }
    Lead(const Lead&) = delete;
    Lead& operator=(const Lead&) = delete;

    // Takes along who can wait until `latest`.
    Batch gather(std::string_view own_name, Instant latest) {
      Batch batch;
      batch.reserve(batcher_.most_ - 1);
      pass_on({&batch, own_name, latest});
      return batch;
    }
    void pass_on() noexcept { pass_on({}); }

   private:
    struct Seats {
      Batch* batch = nullptr;
      std::string_view own_name{};
      Instant latest{};
    };

    void pass_on(const Seats& seats) noexcept {
      std::shared_ptr<PendingRequest> next;
      {
        const MutexLock guard(batcher_.mutex_);
        if (seats.batch != nullptr) batcher_.fill(*seats.batch, seats.own_name, seats.latest);
        if (batcher_.queue_.empty()) {
          batcher_.led_ = false;
        } else {
          next = std::move(batcher_.queue_.front());
          batcher_.queue_.pop_front();
          next->state.store(State::leads, std::memory_order_release);
        }
        given_ = true;
      }
      if (next) next->group->news.advance(next->me);
    }

    RequestBatcher& batcher_;
    bool given_ = false;
  };

  // Those of a batch, until they are answered.
  class UnderWay {
   public:
    UnderWay(RequestBatcher& batcher, std::size_t others) noexcept : batcher_(batcher), others_(others) {
      batcher_.under_way_.fetch_add(others_, std::memory_order_relaxed);
      batcher_.batches_.fetch_add(1, std::memory_order_relaxed);
      batcher_.batched_.fetch_add(others_ + 1, std::memory_order_relaxed);
    }
    ~UnderWay() { batcher_.under_way_.fetch_sub(others_, std::memory_order_relaxed); }
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

   private:
    RequestBatcher& batcher_;
    const std::size_t others_;
  };

  // As many of the queue as there is room for, ordered by name; those whose name is there stay.
  void fill(Batch& batch, std::string_view own_name, Instant latest) noexcept REQUIRES(mutex_) {
    auto rest = queue_.begin();
    for (auto& request : queue_) {
      const auto name = name_of(*request);
      const auto before = [](const auto& other, std::string_view key) { return name_of(*other) < key; };
      const auto place =
          planted("batch_unordered") ? batch.end() : std::lower_bound(batch.begin(), batch.end(), name, before);
      if (batch.size() + 1 >= most_ || request->deadline.at() < latest || name == own_name ||
          (place != batch.end() && name_of(**place) == name)) {
        if (&*rest != &request) *rest = std::move(request);
        ++rest;
        continue;
      }
      request->state.store(State::sent, std::memory_order_release);
      batch.insert(place, std::move(request));  // there is room reserved
    }
    queue_.erase(rest, queue_.end());
  }

  Result lead(const View& view, Deadline deadline) {
    Lead lead(*this);
    auto turn = trip_.turn(deadline);
    Batch batch;
    const auto left = deadline.at() - BootClock::now();
    if (trip_.is_open(turn) && left >= shortest_flight) batch = lead.gather(Trip::name(view), deadline.at() - left / 4);
    else lead.pass_on();
    if (batch.empty()) return trip_.alone(view, std::move(turn), deadline);
    const auto own = std::lower_bound(batch.begin(), batch.end(), Trip::name(view),
                                      [](const auto& request, auto name) { return name_of(*request) < name; });
    const UnderWay counted(*this, batch.size());
    bool in_doubt = false;
    auto result = fly(view, static_cast<std::size_t>(own - batch.begin()), batch, std::move(turn), deadline, in_doubt);
    return result ? std::move(*result) : alone(view, deadline, in_doubt);
  }

  // Sends the view and the batch, in the order of names, the view at `own`; every request gets its answer.
  std::optional<Result> fly(const View& view, std::size_t own, const Batch& batch, typename Trip::Turn turn,
                            Deadline deadline, bool& in_doubt) {
    std::vector<std::optional<Result>> results;
    try {
      std::vector<View> views;
      views.reserve(batch.size() + 1);
      for (const auto& request : batch) {
        if (views.size() == own) views.push_back(view);
        views.push_back(request->kept.view());
      }
      if (views.size() == own) views.push_back(view);
      results = trip_.together(views, std::move(turn), deadline);
    } catch (const Failure& failure) {
      if (!trip_.may_be_of_one(failure)) {
        complete(batch, [&](PendingRequest& request) { request.failure.emplace(same(failure)); });
        throw;
      }
      in_doubt = failure.may_have_run();
      results.assign(batch.size() + 1, std::nullopt);
    } catch (...) {
      complete(batch, [&](PendingRequest& request) { request.defect = std::current_exception(); });
      throw;
    }
    std::size_t at = 0;
    complete(batch, [&](PendingRequest& request) {
      if (at == own) ++at;
      request.in_doubt = in_doubt;
      request.result = std::move(results[at++]);
    });
    return std::move(results[own]);
  }

  // Threads do not share an exception: each gets one that was made for it.
  static Failure same(const Failure& failure, bool in_doubt = false) {
    return {failure.cause(), std::string(failure.what()), failure.code(), failure.may_have_run() || in_doubt};
  }

  // Wakes all of them, by one call a group.
  template <class Fill>
  static void complete(const Batch& batch, Fill fill) {
    for (const auto& request : batch) {
      fill(*request);
      request->state.store(State::completed, std::memory_order_release);
    }
    for (auto first = batch.begin(); first != batch.end(); ++first) {
      EventCount::Whom whom = 0;
      for (auto other = first; other != batch.end(); ++other)
        if ((*other)->group == (*first)->group && !std::exchange((*other)->woken, true)) whom |= (*other)->me;
      if (planted("batch_woken_in_part") && first != batch.begin()) break;
      if (whom != 0) (*first)->group->news.advance(whom);
    }
  }

  // Who may have got what it asks for is not told that nothing was done.
  Result alone(const View& view, Deadline deadline, bool in_doubt) {
    try {
      return trip_.alone(view, trip_.turn(deadline), deadline);
    } catch (const Failure& failure) {
      if (planted("failed_batch_forgotten")) throw;
      throw same(failure, in_doubt);
    }
  }

  Trip trip_;
  const std::size_t most_;
  std::atomic<std::size_t> under_way_{0};
  std::atomic<std::uint64_t> batches_{0}, batched_{0};
  mutable AnnotatedMutex mutex_;
  bool led_ GUARDED_BY(mutex_) = false;  // somebody is in front; else the queue is empty
  std::deque<std::shared_ptr<PendingRequest>> queue_ GUARDED_BY(mutex_);
  GroupPtr group_ GUARDED_BY(mutex_) = std::make_shared<Group>();  // of who queues up next
};

}  // namespace dlock::store
