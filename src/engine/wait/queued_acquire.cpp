// How a call waits in line: when it draws a ticket or is shown to people; when the head looks, tries and marks, and how
// long it lets others go first; how it gives up. Who is the head: wait_queues.cpp.
#include "engine/wait/queued_acquire.hpp"

#include "engine/wait/job_rows.hpp"
#include "engine/wait/mark.hpp"
#include "types/mutant.hpp"
#include "types/pause.hpp"

#include <dlock/error.hpp>

#include <algorithm>

namespace dlock::engine {
namespace {

// A head that has waited for longer is shown to people: it has a row in the waiters' table.
constexpr Duration shown_after = std::chrono::seconds{1};
// For so long the head of a line lets others go first when its line has had enough in one go.
constexpr Duration turn_of_others = std::chrono::milliseconds{20}, shortest_turn = std::chrono::milliseconds{5};
constexpr Duration longest_leave_taking = std::chrono::milliseconds{100};
// A statement that has to be prepared first takes two round trips, and not all of them take the least time.
constexpr int trips_of_a_statement = 4;
// Without a thread: a name of which there are always news leaves the thread to others after so many looks.
constexpr int most_turns = 4;

}  // namespace

template <class Call>
auto QueuedAcquire::retry(Call ask) {
  const auto bound = std::min(context_.answer_by(patience_.deadline, request_.called), step_end_);
  return context_.retry({bound, patience_.stop}, std::move(ask));
}

QueuedAcquire::QueuedAcquire(const AcquireParts& its_parts, GrantRequest& request, const Patience& patience)
    : parts_(its_parts),
      context_(its_parts.context),
      request_(request),
      patience_(patience),
      wait_request_(std::make_shared<WaitRequest>(request.name, request.options, request.terms, request.owner.text(),
                                                  std::string(request.actor.view()), request.job, request.called)),
      in_turn_(request.fairness == Fairness::fifo),
      polling_(context_.within(context_.options.polling.first, 1), context_.options.polling.longest),
      pauses_of_turn_(context_.within(shortest_turn, 1), context_.options.polling.longest) {
  wait_request_->by_job = request.by_job;
  wait_request_->mode = asked_for();
}

QueuedAcquire::~QueuedAcquire() {
  if (waiter_) {
    // Only after a failure: what was handed over meanwhile has nobody any more.
    try {
      if (const auto late = context_.queues->leave(waiter_))
        parts_.releaser.release(late, context_.options.timeouts.release);
    } catch (const std::exception&) {  // out of memory: it ends with its lease
    }
  }
  if (has_row_) context_.notifier.remove_later(request_.name.text(), row_owner_, doubtful_);
}

std::shared_ptr<Lease> QueuedAcquire::wait() {
  begin();
  for (;;) {
    if (auto end = attend()) return *end;
    if (auto end = woken(context_.queues->rest(waiter_, next_look(), patience_.deadline, patience_.stop))) return *end;
  }
}

void QueuedAcquire::begin(std::function<void()> news, const std::shared_ptr<Lease>& before) {
  news_ = std::move(news);
  if (!before || before->ended()) return begin();
  sit(true);
  // Who let go of it before this was in line has woken nobody.
  if (before->ended()) context_.queues->wake_head(request_.name.text());
}

void QueuedAcquire::begin() {
  if (in_turn_) draw_ticket();
  sit();
  if (request_.ticket != 0) registered();
}

std::optional<std::shared_ptr<Lease>> QueuedAcquire::go_on() {
  step_end_ = context_.soon();
  for (int turn = 0; turn < most_turns; ++turn) {
    if (!attended_)
      if (auto end = attend()) return end;
    attended_ = true;
    rests_until_ = next_look();
    const auto reason = context_.queues->look_up(waiter_, rests_until_, patience_.deadline, patience_.stop);
    if (!reason) return std::nullopt;
    attended_ = false;
    if (auto end = woken(*reason)) return end;
  }
  rests_until_ = BootClock::now();
  return std::nullopt;
}

// What there is to do now.
QueuedAcquire::Step QueuedAcquire::attend() {
  until_ = patience_.deadline;
  context_.notifier.ensure_running();
  const auto status = context_.queues->attend(waiter_);
  if (status.ask) request_.unanswered = request_.handed = true;  // and stays so: what was handed over may come late
  if (auto held = parts_.reentry.enter_by_job(request_, patience_.deadline)) return settle_for(std::move(held));
  if (status.dead) row_ = RowState::wanted;
  if (row_ == RowState::none && (in_turn_ || request_.may_hold_something())) row_ = RowState::wanted;
  if (row_ == RowState::wanted) {
    if (in_turn_ || request_.ticket != 0) draw_ticket();
    else add_row();
  }
  // Nothing can be written just now: later, before anything else.
  if (row_ == RowState::wanted) until_ = later(BootClock::now(), std::min(polling_.next(), longest_unmarked));
  if ((status.head && !(in_turn_ && request_.ticket == 0)) || request_.enters_by_node(context_))
    if (auto held = lead(status)) return held;
  wait_request_->by_statement = request_.in_doubt || request_.unanswered || has_row_;
  return std::nullopt;
}

QueuedAcquire::Step QueuedAcquire::woken(WaitQueues::WakeReason reason) {
  if (reason == WaitQueues::WakeReason::handed) {
    if (auto held = accept(context_.queues->leave(waiter_))) return held;
    sit();
  }
  if (reason == WaitQueues::WakeReason::stopped) return give_up();
  const auto now = BootClock::now();
  if (now >= patience_.deadline) return give_up();
  if (now < detector_.next()) return std::nullopt;
  if (rows_are_right())
    retry(
        [&](Deadline until) { return detector_.look(*context_.table, request_.actor.view(), request_.owner, until); });
  else detector_.put_off();
  return std::nullopt;
}

// Another node keeps everybody out.
Mode QueuedAcquire::asked_for() const { return request_.mode == Mode::node ? Mode::exclusive : request_.mode; }

store::Wait QueuedAcquire::wait_as(store::Wait::Discipline discipline) const {
  const auto now = BootClock::now();
  store::Wait wait{request_.name.text(),
                   request_.owner,
                   context_.options.node,
                   request_.options.label ? std::string_view{*request_.options.label} : context_.options.label,
                   request_.actor.view(),
                   discipline,
                   row_for_people,
                   std::nullopt};
  wait.wants = asked_for();
  wait.waited = std::chrono::floor<Duration>(now - request_.called);
  if (discipline == store::Wait::Discipline::fifo || depended_on()) wait.ttl = context_.options.ticket;
  if (patience_.deadline != Instant::max())
    wait.patience = std::chrono::ceil<Duration>(std::max(patience_.deadline, now) - now);
  return wait;
}

void QueuedAcquire::sit(bool quiet) {
  const bool takes = request_.mode == Mode::exclusive || planted("reader_handed_on");
  waiter_ = context_.queues->join(wait_request_, request_.ticket, takes, news_, quiet);
  if (quiet || !request_.row_locked) context_.queues->blocked(waiter_, false);
  if (WaitQueues::led_at_once(waiter_)) context_.notifier.attend();
}

// A row that may be there is there, for whoever has to take it away.
void QueuedAcquire::has_row() {
  has_row_ = true;
  row_owner_ = request_.owner.text();
  if (news_) known_.waits_without_thread(row_owner_, request_.options.job.name());
  else known_.waits_as(row_owner_, request_.options.job.name());
}

void QueuedAcquire::registered() {
  row_ = RowState::there;
  context_.queues->revived(waiter_);
  context_.queues->registered(waiter_,
                              depended_on() ? WaitQueues::RowKind::depended_on : WaitQueues::RowKind::for_people);
  context_.notifier.attend();
  if (request_.may_hold_something()) detector_.begin();
}

// False: one of them may be locked, and what waits here is not kept from anything meanwhile.
bool QueuedAcquire::rows_are_right() {
  try {
    put_rows_right(request_.job, {context_.shortly(patience_.deadline), patience_.stop});
    return true;
  } catch (const Failure&) { return false; }
}

// Nothing is drawn while the lock's row is locked by a transaction.
void QueuedAcquire::draw_ticket() {
  has_row();
  const auto ticket = retry([&](Deadline until) -> std::int64_t {
    try {
      put_rows_right(request_.job, until);
      return context_.table->waiting().draw_ticket(wait_as(store::Wait::Discipline::fifo), until);
    } catch (const Failure& failure) {
      doubtful_ = doubtful_ || failure.may_have_run();
      if (failure.cause() != Cause::locked) throw;
      return 0;
    }
  });
  if (ticket == 0) return;
  request_.ticket = ticket;
  if (!waiter_) return;
  context_.queues->give_ticket(waiter_, ticket);
  registered();
}

// Once, and not for long: without a row it waits as well, only unseen.
void QueuedAcquire::add_row() {
  if (!rows_are_right()) return;
  has_row();
  try {
    context_.table->waiting().add(wait_as(store::Wait::Discipline::barging),
                                  {context_.shortly(patience_.deadline), patience_.stop});
  } catch (const Failure& failure) {
    // Where a commit takes longer than that, it is there a moment later; if it is not, that is noticed.
    if (!failure.may_have_run() || planted("late_row_unseen")) return;
    doubtful_ = true;
  }
  registered();
}

// Where not even that is possible now, nothing is known of the name.
store::Availability QueuedAcquire::look() {
  auto availability = retry([&](Deadline until) {
    try {
      request_.row_locked = false;
      return parts_.attempts.look(request_, until);
    } catch (const Failure& failure) {
      if (failure.cause() != Cause::locked) throw;
      request_.row_locked = true;
      return store::Availability{};
    }
  });
  if (request_.row_locked || !availability.free) {
    request_.refused(request_.row_locked);
    context_.queues->blocked(waiter_, request_.row_locked);
  } else {
    request_.refused_at = {};
  }
  return availability;
}

// What only the head of a line does: look, and take what it sees free. Sets until_ to when it should look again.
std::shared_ptr<Lease> QueuedAcquire::lead(const WaitQueues::WaiterState& status) {
  const auto now = BootClock::now();
  until_ =
      later(now, std::min(polling_.next(), row_ == RowState::wanted ? longest_unmarked : until_marked_anew(context_)));
  if (row_ == RowState::none && now - begun_ > shown_after) row_ = RowState::wanted;
  if (parts_.lingering.lingers(request_.name.text()))
    if (auto held = attempt()) return held;
  if (status.quiet) return nullptr;  // granted in this process just now: its release will be heard of
  // Notification by name: a release, and most likely the row is free. A try in vain writes nothing.
  if (status.notified && !status.yields)
    if (auto held = attempt(true)) return held;
  if (status.ask) {
    if (auto held = attempt()) return held;
  }
  auto availability = look();
  if (request_.row_locked) return look_again_soon();
  // What is in the way may be an attempt of this request, or of one that is over here, that took effect late.
  if (availability.owner == request_.owner) {
    request_.handed = true;
    if (auto held = attempt()) return held;
    availability = look();
  } else if (parts_.late_attempts.free_late_grant(request_.name, availability,
                                                  {context_.answer_by(patience_.deadline), patience_.stop})) {
    availability = look();
  }
  // Who finds a queue joins it; and who waits for those who share the name keeps those away who come later.
  const bool keeps_others_away =
      !planted("readers_pass_writers") && availability.shared && !availability.free && request_.mode == Mode::exclusive;
  if ((availability.queued || keeps_others_away) && request_.ticket == 0) {
    draw_ticket();
    if (request_.ticket == 0) return look_again_soon();
    availability = look();
  }
  if (availability.free && status.yields && availability.wanted_for > Duration{}) {
    const auto turn = context_.within(turn_of_others, 2);  // they have to hear of it first
    pause_until(std::min(later(now, jittered(turn)), patience_.deadline), patience_.stop);
    availability = look();
  }
  for (bool tried = false, marked = false;;) {
    if (availability.free && !tried) {
      tried = true;
      if (auto held = attempt()) return held;
      if (request_.row_locked) return look_again_soon();
      availability = look();  // somebody was quicker
    } else if (uses_marks(context_) && !availability.free && !marked &&
               (availability.shared || status.unheard || !availability.holder.starts_with(context_.engine_id)) &&
               availability.wanted_for < mark_renewed_at) {
      // The mark is on the row before the look that decides to sleep: a release after that look notifies.
      marked = true;
      if (!mark()) look_again_soon();
      if (!planted("no_second_look")) availability = look();
    } else {
      break;
    }
  }
  // What is released in this process is heard of without listening.
  const bool own = !status.unheard && availability.holder.starts_with(context_.engine_id);
  if (context_.queues->saw(waiter_, own ? "" : availability.holder)) context_.notifier.attend();
  // Who comes first takes it in a moment, and only who sees that can hear of the release.
  const bool by_holder = context_.options.listen && context_.table->heard_by_holder();
  const bool unheard = by_holder && availability.queued && (availability.holder.empty() || availability.shared);
  if (!unheard || planted("turn_not_looked_for")) pauses_of_turn_.begin_anew();
  else until_ = std::min(until_, later(BootClock::now(), pauses_of_turn_.next()));
  if (availability.opens_in > Duration{}) until_ = std::min(until_, later(BootClock::now(), availability.opens_in));
  if (availability.wanted_for > mark_renewed_at)
    until_ = std::min(until_, later(BootClock::now(), until_marked_anew(context_, availability.wanted_for)));
  return nullptr;
}

// Without a mark, or a ticket, there may be nothing to hear.
std::shared_ptr<Lease> QueuedAcquire::look_again_soon() noexcept {
  until_ = std::min(until_, later(BootClock::now(), longest_unmarked));
  return nullptr;
}

bool QueuedAcquire::mark() {
  marked_ = true;
  return mark_wanted(context_, request_.name, {context_.shortly(patience_.deadline), patience_.stop});
}

std::shared_ptr<Lease> QueuedAcquire::attempt(bool freed) {
  request_.freed = freed;
  auto held = parts_.attempts.try_once(request_, std::min(patience_.deadline, step_end_), patience_.stop);
  if (held) {
    context_.queues->leave(waiter_, request_.mode == Mode::exclusive);  // or else the next one may have its turn, too
    waiter_ = nullptr;
    return held;
  }
  context_.queues->blocked(waiter_, request_.row_locked);
  if (request_.owner != std::string_view{wait_request_->owner}) {
    context_.queues->rename(waiter_, request_.owner.text());
  }
  return held;
}

// A grant that comes too late to be of use is asked for once more: the same owner has the same token.
std::shared_ptr<Lease> QueuedAcquire::accept(std::shared_ptr<Lease> held) {
  waiter_ = nullptr;
  if (held) held->unanswered = held->unanswered || request_.unanswered;
  if (!held || held->valid(BootClock::now())) return held;
  if (!held->loss()) return held;         // it was released in the meantime, with all that its engine held
  if (held->owner() != request_.owner) {  // it came under the owner of those before it, and is asked for as its own
    parts_.releaser.release(held, context_.options.timeouts.release);
    return nullptr;
  }
  context_.forget(held);
  request_.handed = true;
  request_.in_doubt = true;
  if (held->ends() != Instant::max()) request_.begun = held->ends() - request_.terms.max_hold;
  return parts_.attempts.try_once(request_, std::min(patience_.deadline, step_end_), patience_.stop);
}

// Leaves the line with what its job holds; with a grant of its own, if there is one after all.
std::shared_ptr<Lease> QueuedAcquire::settle_for(std::shared_ptr<Lease> entered) {
  std::shared_ptr<Lease> late;
  try {
    late = give_up();
  } catch (...) {
    request_.entered = false;
    parts_.releaser.release(entered, context_.options.timeouts.release);
    throw;
  }
  if (!late) return entered;
  request_.entered = false;
  parts_.releaser.release(entered, context_.options.timeouts.release);
  return late;
}

std::shared_ptr<Lease> QueuedAcquire::give_up() {
  request_.row_locked = context_.queues->blocked(waiter_);
  if (auto late = accept(context_.queues->leave(waiter_))) return late;
  // Who is told to stop waits for nothing more: the notifier takes the row away, and a mark is over in seconds.
  if (patience_.stop.stop_requested()) return nullptr;
  // It must not take long, and where it would it is left to the notifier.
  if (context_.within({}, trips_of_a_statement) > longest_leave_taking) {
    if (marked_ && !context_.queues->anybody_listens(request_.name.text()))
      context_.notifier.unwant_later(request_.name.text());
    return nullptr;
  }
  const auto deadline =
      later(BootClock::now(), std::min<Duration>(context_.options.timeouts.release, longest_leave_taking));
  try {
    if (has_row_ && !doubtful_) {
      context_.table->waiting().remove(request_.name.text(), row_owner_, deadline);
      has_row_ = false;
      context_.queues->wake_head(request_.name.text());  // the next in line may have seen the ticket still
    }
    if (marked_ && !context_.queues->anybody_listens(request_.name.text()))
      context_.table->waiting().unwant(request_.name.text(), deadline);
  } catch (const Failure&) {  // the notifier tries again with the row; a mark is over in seconds
  }
  return nullptr;
}

}  // namespace dlock::engine
