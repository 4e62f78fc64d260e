// One of many requests that share a statement: what it asks, how far it is, and how it is woken.
#pragma once

#include "types/clock.hpp"
#include "types/event_count.hpp"
#include "types/failure.hpp"
#include "types/mutant.hpp"

#include <atomic>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dlock::store {

// Some that queue up one after another, each with a bit of its own: one wake is enough for those of a batch.
struct WakeGroup {
  static constexpr int capacity = std::numeric_limits<EventCount::Whom>::digits;
  EventCount news;
  std::atomic<EventCount::Whom> to_wake{0};
};

// What became of one of many: its answer, or what went wrong with it. Neither: it has to be sent alone.
template <class Result>
struct BatchResult {
  std::optional<Result> result{};
  std::optional<Failure> failure{};
  bool in_doubt = false;  // where it is sent alone: it may have been done
};

// Threads: whose it is, and its leader. `kept`: a copy, since its caller may go before the answer comes.
template <class Operation>
class PendingRequest {
 public:
  using Result = typename Operation::Result;
  enum class State { queued, leads, sent, completed };
  using Batch = std::vector<std::shared_ptr<PendingRequest>>;

  PendingRequest(const typename Operation::View& view, Deadline its_deadline) : kept(view), deadline(its_deadline) {}
  std::string_view name() const { return Operation::name(kept.view()); }
  std::size_t kind() const { return Operation::kind(kept.view()); }
  State state() const noexcept { return state_.load(std::memory_order_acquire); }
  bool waits() const noexcept { return state() == State::queued || state() == State::sent; }
  void leaves_queue(State state) noexcept { state_.store(state, std::memory_order_release); }

  // Before it is queued.
  void join(std::shared_ptr<WakeGroup> group, int index) noexcept {
    group_ = std::move(group);
    me_ = EventCount::Whom{1} << index;
  }
  // Until it leads, is completed, or its time is up.
  void wait() {
    wait_until([this] { return waits() ? deadline.at() : Instant::min(); });
  }
  // At most until the instant that `until` tells, which is asked again whenever it is woken.
  template <class Until>
  void wait_until(Until until) {
    const std::stop_callback stopped(deadline.stop(), [this] { wake(); });
    for (;;) {
      const auto seen = group_->news.read();
      const Instant end = until();
      if (BootClock::now() >= end || deadline.passed()) return;
      group_->news.await(seen, end, me_);
    }
  }
  void wake() noexcept { group_->news.advance(me_); }

  // What was answered; throws what went wrong. Empty: it has to be sent alone.
  std::optional<Result> take_answer() {
    if (auto* const result = std::get_if<Result>(&answer_)) return std::move(*result);
    if (const auto* const failure = std::get_if<Failure>(&answer_)) throw same(*failure);
    if (const auto* const defect = std::get_if<std::exception_ptr>(&answer_)) std::rethrow_exception(*defect);
    return std::nullopt;
  }
  void answer(BatchResult<Result>& outcome) {
    in_doubt = outcome.in_doubt;
    if (outcome.failure) answer(*outcome.failure);
    else if (outcome.result) answer_ = std::move(*outcome.result);
  }
  void answer(const Failure& failure) { answer_ = same(failure); }
  void answer(std::exception_ptr defect) { answer_ = std::move(defect); }

  // Answers each of them, and wakes all by one call a group.
  template <class Give>
  static void complete(const Batch& batch, Give give) {
    for (const auto& request : batch) {
      give(*request);
      request->leaves_queue(State::completed);
      request->group_->to_wake.fetch_or(request->me_, std::memory_order_acq_rel);
    }
    for (const auto& request : batch) {
      const auto whom = request->group_->to_wake.exchange(0, std::memory_order_acq_rel);
      if (whom != 0) request->group_->news.advance(whom);
      if (planted("batch_woken_in_part")) break;
    }
  }

  const typename Operation::Kept kept;
  const Deadline deadline;
  // Written by its leader, with the answer: the batch has failed, and may have done what this asks for.
  bool in_doubt = false;

 private:
  // Threads do not share an exception: each gets one that was made for it.
  static Failure same(const Failure& failure) {
    return {failure.cause(), std::string(failure.what()), failure.code(), failure.may_have_run()};
  }

  std::shared_ptr<WakeGroup> group_{};
  EventCount::Whom me_ = 0;
  std::atomic<State> state_{State::queued};  // left with the queue's mutex held
  std::variant<std::monostate, Result, Failure, std::exception_ptr> answer_{};
};

}  // namespace dlock::store
