// How a call waits: in line, as the head looking and marking, until it is granted or out of patience.
#include "engine/backoff.hpp"
#include "engine/core.hpp"
#include "engine/pause.hpp"
#include "engine/request.hpp"
#include "engine/retry.hpp"
#include "engine/wait/deadlock_detector.hpp"
#include "engine/wait/known_waiters.hpp"
#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <algorithm>

namespace dlock {
inline namespace v0 {
namespace {

using engine::Lease;
using engine::WaitQueues;

// A head that has waited for longer is shown to people: it has a row in the waiters' table.
constexpr Duration shown_after = std::chrono::seconds{1};
// For so long the head of a line lets others go first when its line has had enough in one go.
constexpr Duration turn_of_others = std::chrono::milliseconds{20};
constexpr Duration longest_farewell = std::chrono::milliseconds{100};
// A statement that has to be prepared first takes two round trips, and not all of them take the least time.
constexpr int trips_of_a_statement = 4;

}  // namespace

// Threads: one. Leaves nothing behind, however it ends.
class Core::QueuedAcquire {
  template <class Ask>
  auto retry(Ask ask) {
    bool ignored = false;
    return core_.retry(core_.answer_by(patience_.deadline, request_.called), patience_.stop, ignored, std::move(ask));
  }

 public:
  QueuedAcquire(Core& core, Request& request, const Patience& patience)
      : core_(core),
        request_(request),
        patience_(patience),
        wish_(std::make_shared<engine::WaitRequest>(request.name, request.options, request.terms, request.owner.text(),
                                                    std::string(request.actor.view()), request.job, request.called)),
        polling_(core.within(core.options_.poll_first, 1), core.options_.poll_floor) {
    wish_->by_job = request.by_job;
  }

  ~QueuedAcquire() {
    if (waiter_) {
      // Only after a failure: what was handed over meanwhile has nobody any more.
      try {
        if (const auto late = core_.queues_->leave(waiter_)) core_.release(late, core_.options_.release_timeout);
      } catch (const std::exception&) {  // out of memory: it ends with its lease
      }
    }
    if (has_row_) core_.notifier_.discard_later(request_.name.text(), row_owner_);
  }
  QueuedAcquire(const QueuedAcquire&) = delete;
  QueuedAcquire& operator=(const QueuedAcquire&) = delete;

  // Empty: out of patience.
  std::shared_ptr<Lease> wait() {
    const bool in_turn = request_.fairness == Fairness::fifo;
    if (in_turn) draw();
    sit();
    if (request_.ticket != 0) registered();
    for (;;) {
      until_ = patience_.deadline;
      core_.notifier_.ensure_running();
      const auto status = core_.queues_->attend(waiter_);
      if (auto held = core_.enter_by_job(request_, patience_.deadline)) return settle_for(std::move(held));
      if (status.dead) row_ = Row::wanted;
      if (row_ == Row::none && (in_turn || request_.may_hold_something())) row_ = Row::wanted;
      if (row_ == Row::wanted) {
        if (in_turn || request_.ticket != 0) draw();
        else enroll();
      }
      // Nothing can be written just now: later, before anything else.
      if (row_ == Row::wanted) until_ = later(BootClock::now(), polling_.next());
      if (status.head && !(in_turn && request_.ticket == 0))
        if (auto held = lead(status)) return held;
      switch (core_.queues_->rest(waiter_, std::min(until_, detector_.next()), patience_.deadline, patience_.stop)) {
        case WaitQueues::WakeReason::handed:
          if (auto held = accept(core_.queues_->leave(waiter_))) return held;
          sit();
          break;
        case WaitQueues::WakeReason::stopped: return give_up();
        case WaitQueues::WakeReason::notified:
        case WaitQueues::WakeReason::head:
        case WaitQueues::WakeReason::time: break;
      }
      const auto now = BootClock::now();
      if (now >= patience_.deadline) return give_up();
      if (now >= detector_.next())
        retry([&](Deadline until) {
          put_rows_right(request_.job, until);
          return detector_.look(*core_.table_, request_.actor.view(), request_.owner, until);
        });
    }
  }

 private:
  store::Wait wait_as(store::Wait::Mode mode) const {
    const auto now = BootClock::now();
    store::Wait wait{request_.name.text(),
                     request_.owner,
                     core_.options_.node,
                     request_.options.label ? std::string_view{*request_.options.label} : core_.options_.label,
                     request_.actor.view(),
                     mode,
                     engine::row_for_people,
                     std::nullopt};
    if (mode == store::Wait::Mode::fifo || depended_on()) wait.ttl = core_.options_.ticket;
    if (patience_.deadline != Instant::max())
      wait.wants = std::chrono::ceil<Duration>(std::max(patience_.deadline, now) - now);
    return wait;
  }

  // Whether others wait behind its ticket, or may be told of a deadlock with it in it.
  bool depended_on() const { return request_.ticket != 0 || request_.may_hold_something(); }

  void sit() {
    waiter_ = core_.queues_->join(wish_, request_.ticket, request_.entry.empty());
    if (!request_.row_locked) core_.queues_->blocked(waiter_, false);
    core_.notifier_.attend();
  }

  // A row that may be there is there, for whoever has to take it away.
  void has_row() {
    has_row_ = true;
    row_owner_ = request_.owner.text();
    known_.waits_as(row_owner_, request_.options.job.name());
  }

  void registered() {
    row_ = Row::there;
    core_.queues_->revived(waiter_);
    core_.queues_->registered(waiter_,
                              depended_on() ? WaitQueues::RowKind::depended_on : WaitQueues::RowKind::for_people);
    core_.notifier_.attend();
    if (request_.may_hold_something()) detector_.begin();
  }

  // Nothing is drawn while the lock's row is locked by a transaction.
  void draw() {
    has_row();
    const auto ticket = retry([&](Deadline until) -> std::int64_t {
      try {
        put_rows_right(request_.job, until);
        return core_.table_->waiting().draw(wait_as(store::Wait::Mode::fifo), until);
      } catch (const Failure& failure) {
        if (failure.cause() != Cause::locked) throw;
        return 0;
      }
    });
    if (ticket == 0) return;
    request_.ticket = ticket;
    if (!waiter_) return;
    core_.queues_->give_ticket(waiter_, ticket);
    registered();
  }

  // Once, and not for long: without a row it waits as well, only unseen.
  void enroll() {
    has_row();
    try {
      put_rows_right(request_.job, {core_.shortly(patience_.deadline), patience_.stop});
      core_.table_->waiting().enroll(wait_as(store::Wait::Mode::barging),
                                     {core_.shortly(patience_.deadline), patience_.stop});
    } catch (const Failure&) { return; }
    registered();
  }

  // Where not even that is possible now, nothing is known of the name.
  store::Availability look() {
    const auto availability = retry([&](Deadline until) {
      try {
        request_.row_locked = false;
        return core_.table_->look(request_.name.text(), request_.ticket, until);
      } catch (const Failure& failure) {
        if (failure.cause() != Cause::locked) throw;
        request_.row_locked = true;
        return store::Availability{};
      }
    });
    if (request_.row_locked || !availability.free) {
      request_.refused(request_.row_locked);
      core_.queues_->blocked(waiter_, request_.row_locked);
    } else {
      request_.refused_at = {};
    }
    return availability;
  }

  // What only the head of a line does: look, and take what it sees free. Sets until_ to when it should look again.
  std::shared_ptr<Lease> lead(const WaitQueues::WaiterState& status) {
    const auto now = BootClock::now();
    until_ = later(now, polling_.next());
    if (row_ == Row::none && now - begun_ > shown_after) row_ = Row::wanted;
    if (status.quiet) return nullptr;  // granted in this process just now: its release will be heard of
    // Notification by name: a release, and most likely the row is free. A try in vain writes nothing.
    if (status.notified && !status.yields && request_.entry.empty())
      if (auto held = attempt()) return held;
    if (status.ask || !request_.entry.empty()) {
      request_.unanswered = request_.unanswered || status.ask;  // and stays so: what was handed over may come late
      if (auto held = attempt()) return held;
      if (!request_.entry.empty()) return nullptr;  // its node may be inside by then: only asking tells
    }
    auto availability = look();
    if (request_.row_locked) return nullptr;
    // What is in the way may be an attempt of this request, or of one that is over here, that took effect late.
    if (availability.owner == request_.owner) {
      if (auto held = attempt()) return held;
      availability = look();
    } else if (core_.free_late_grant(request_.name, availability,
                                     {core_.answer_by(patience_.deadline), patience_.stop})) {
      availability = look();
    }
    if (availability.queued && request_.ticket == 0) {  // who finds a queue joins it
      draw();
      if (request_.ticket == 0) return nullptr;
      availability = look();
    }
    if (availability.free && status.yields && availability.wanted_for > Duration{}) {
      const auto turn = core_.within(turn_of_others, 2);  // they have to hear of it first
      engine::pause_until(std::min(later(now, engine::jittered(turn)), patience_.deadline), patience_.stop);
      availability = look();
    }
    for (bool tried = false, marked = false;;) {
      if (availability.free && !tried) {
        tried = true;
        if (auto held = attempt()) return held;
        if (request_.row_locked) return nullptr;
        availability = look();  // somebody was quicker
      } else if (core_.options_.listen && !availability.free && !marked && !core_.granted_here(availability) &&
                 availability.wanted_for < mark_length / 4) {
        // The mark is on the row before the look that decides to sleep: a release after that look notifies.
        marked = true;
        mark();
        if (!planted("no_second_look")) availability = look();
      } else {
        break;
      }
    }
    if (core_.queues_->saw(waiter_, availability.holder)) core_.notifier_.attend();
    if (availability.opens_in > Duration{}) until_ = std::min(until_, later(BootClock::now(), availability.opens_in));
    return nullptr;
  }

  void mark() {
    marked_ = true;
    core_.mark(request_.name, {core_.shortly(patience_.deadline), patience_.stop});
  }

  std::shared_ptr<Lease> attempt() {
    auto held = core_.try_once(request_, patience_.deadline, patience_.stop);
    if (held) {
      core_.queues_->leave(waiter_, true);
      waiter_ = nullptr;
      return held;
    }
    core_.queues_->blocked(waiter_, request_.row_locked);
    if (request_.owner != std::string_view{wish_->owner}) { core_.queues_->rename(waiter_, request_.owner.text()); }
    return held;
  }

  // A grant that comes too late to be of use is asked for once more: the same owner has the same token.
  std::shared_ptr<Lease> accept(std::shared_ptr<Lease> held) {
    waiter_ = nullptr;
    if (held) held->unanswered = held->unanswered || request_.unanswered;
    if (!held || held->valid(BootClock::now())) return held;
    core_.forget(held);
    request_.in_doubt = true;
    if (held->ends() != Instant::max()) request_.begun = held->ends() - request_.terms.max_hold;
    return core_.try_once(request_, patience_.deadline, patience_.stop);
  }

  // Leaves the line with what its job holds; with a grant of its own, if there is one after all.
  std::shared_ptr<Lease> settle_for(std::shared_ptr<Lease> entered) {
    std::shared_ptr<Lease> late;
    try {
      late = give_up();
    } catch (...) {
      request_.entered = false;
      core_.release(entered, core_.options_.release_timeout);
      throw;
    }
    if (!late) return entered;
    request_.entered = false;
    core_.release(entered, core_.options_.release_timeout);
    return late;
  }

  std::shared_ptr<Lease> give_up() {
    request_.row_locked = core_.queues_->blocked(waiter_);
    if (auto late = accept(core_.queues_->leave(waiter_))) return late;
    // Who is told to stop waits for nothing more: the notifier takes the row away, and a mark is over in seconds.
    if (patience_.stop.stop_requested()) return nullptr;
    // It must not take long, and where it would it is left to the notifier.
    if (core_.within({}, trips_of_a_statement) > longest_farewell) {
      if (marked_ && !core_.queues_->anybody(request_.name.text())) core_.notifier_.unwant_later(request_.name.text());
      return nullptr;
    }
    const auto deadline = later(BootClock::now(), std::min<Duration>(core_.options_.release_timeout, longest_farewell));
    try {
      if (has_row_) {
        core_.table_->waiting().discard(request_.name.text(), row_owner_, deadline);
        has_row_ = false;
        core_.queues_->wake_head(request_.name.text());  // the next in line may have seen the ticket still
      }
      if (marked_ && !core_.queues_->anybody(request_.name.text()))
        core_.table_->waiting().unwant(request_.name.text(), deadline);
    } catch (const Failure&) {  // the notifier tries again with the row; a mark is over in seconds
    }
    return nullptr;
  }

  Core& core_;
  Request& request_;
  const Patience& patience_;
  const std::shared_ptr<engine::WaitRequest> wish_;
  engine::Polling polling_;
  const Instant begun_ = BootClock::now();
  WaitQueues::WaiterPtr waiter_{};
  Instant until_{};
  bool has_row_ = false, marked_ = false;  // has_row_: or may have one
  enum class Row { none, wanted, there } row_ = Row::none;
  std::string row_owner_{};
  engine::DeadlockDetector detector_{};
  engine::KnownWaiter known_{};
};

// Empty: busy, or out of patience.
std::shared_ptr<Lease> Core::wait_for_grant(Request& request, const Patience& patience) {
  std::shared_ptr<Lease> entered;
  try {
    // Who is in line in this process comes first, but for those who do not wait.
    std::shared_ptr<Lease> held;
    try {
      if (!patience.waits || !queues_->anybody(request.name.text())) held = try_first(request, patience);
      if (!held) held = enter_by_job(request, patience.deadline);
      const bool waits = patience.waits && !patience.stop.stop_requested() && BootClock::now() < patience.deadline;
      if (!held && waits) held = QueuedAcquire(*this, request, patience).wait();
    } catch (const Error& error) {
      // It was not to be had a moment ago: that the last look was not answered in time changes nothing.
      const auto now = BootClock::now();
      if (now < patience.deadline || !request.was_refused(now) || !engine::is_transient(error.fault())) throw;
      request.row_locked = request.refused_locked;
      request.silent = true;
    }
    if (!held && request.row_locked && !patience.stop.stop_requested()) held = look_into_lock(request, patience);
    entered = request.entered ? held : nullptr;
    if (held && !entered) return held;
  } catch (const Error&) {
    // Whatever an attempt without an answer may have been granted must not be held by nobody.
    if ((request.in_doubt || request.unanswered) && !planted("doubt_not_given_back")) free_later(request);
    if (patience.stop.stop_requested()) return nullptr;
    throw;
  }
  if (request.in_doubt || request.unanswered) free_later(request);
  return entered;
}

}  // namespace v0
}  // namespace dlock
