// Waits for news of a name without standing in line for it.
#pragma once

#include "engine/backoff.hpp"
#include "engine/context.hpp"
#include "engine/patience.hpp"
#include "engine/wait/deadlock_detector.hpp"
#include "engine/wait/job_rows.hpp"
#include "engine/wait/known_waiters.hpp"
#include "engine/wait/mark.hpp"
#include "store/waiter_table.hpp"
#include "types/mutant.hpp"

#include <algorithm>

namespace dlock::engine {

// Threads: one. `owner` and `actor`: as whom it waits, where others are to see it.
class ReleaseObserver {
  template <class Call>
  auto ask(Call question) {
    return context_.retry({context_.answer_by(patience_.deadline), patience_.stop}, std::move(question));
  }

 public:
  ReleaseObserver(Context& context, const Name& name, const Patience& patience, std::string owner = {})
      : context_(context),
        name_(name),
        patience_(patience),
        owner_(std::move(owner)),
        waiter_(context.queues->observe(name.text(), owner_)),
        polling_(context.within(context.options.polling.first, 1), context.options.polling.longest) {
    context_.notifier.attend();
  }
  ~ReleaseObserver() {
    context_.queues->leave(waiter_);
    if (has_row_) context_.notifier.remove_later(name_.text(), owner_, doubtful_);
    if (marks_again_ == Instant{} || patience_.stop.stop_requested() || context_.queues->anybody_listens(name_.text()))
      return;
    // By another thread, and behind the row: a transaction of the caller may have locked the name, or the file.
    context_.notifier.unwant_later(name_.text());
    if (planted("mark_taken_away_at_once"))
      context_.table->waiting().unwant(name_.text(), later(BootClock::now(), context_.options.timeouts.release));
  }
  ReleaseObserver(const ReleaseObserver&) = delete;
  ReleaseObserver& operator=(const ReleaseObserver&) = delete;

  // Before each look: what is heard from here on ends the next rest().
  void attend() {
    context_.notifier.ensure_running();
    const bool dead = context_.queues->attend(waiter_).dead;
    if (has_row_ && (dead || !seen_) && BootClock::now() < patience_.deadline) add_row();
  }

  // Marks the name as wanted, if that is of use and it does not know that it is. True: it did, and another look is due.
  bool marks() {
    if (!uses_marks(context_) || BootClock::now() < marks_again_) return false;
    const bool marked = mark_wanted(context_, name_, {context_.shortly(patience_.deadline), patience_.stop});
    marks_again_ = later(BootClock::now(), marked ? mark_length / 2 : longest_unmarked);
    return marked;
  }

  // Of who was granted the name in a transaction: what takes its mark away would come in behind that transaction, and
  // in front of the next one. It is over by itself in seconds.
  void leave_mark() noexcept {
    if (!planted("mark_taken_away_at_once")) marks_again_ = Instant{};
  }

  // Shows that `actor`, who may hold something, waits here: from now on a deadlock is found. `thread`: whose it is, if
  // it has no `job`.
  void add_row(JobRef thread, const Job& job, std::string_view actor) {
    job_ = std::move(thread);
    known_.waits_as(owner_, job.name());
    actor_ = actor;
    has_row_ = true;
    add_row();
  }

  // Until something may have changed. `opens_in`: when it does so by itself; 0: nobody knows. Throws Error{deadlock}.
  void rest(Duration opens_in, std::string holder) {
    if (context_.queues->saw(waiter_, std::move(holder))) context_.notifier.attend();
    auto pause = polling_.next();
    if (opens_in > Duration{}) pause = std::min(pause, opens_in);
    auto until = std::min(later(BootClock::now(), pause), detector_.next());
    if (marks_again_ > BootClock::now() && !planted("mark_outlived")) until = std::min(until, marks_again_);
    context_.queues->rest(waiter_, until, patience_.deadline, patience_.stop);
    if (BootClock::now() < detector_.next()) return;
    if (!rows_are_right()) return detector_.put_off();
    ask([&](Deadline deadline) { return detector_.look(*context_.table, actor_, owner_, deadline); });
  }

 private:
  // False: one of them may be locked, and a transaction that waits here is not kept from anything meanwhile.
  bool rows_are_right() {
    try {
      put_rows_right(job_, {context_.shortly(patience_.deadline), patience_.stop});
      return true;
    } catch (const Failure&) { return false; }
  }

  // Again before each look until it has succeeded, and whenever its row has died.
  void add_row() {
    seen_ = false;
    store::Wait wait{name_.text(),
                     owner_,
                     context_.options.node,
                     context_.options.label,
                     actor_,
                     store::Wait::Discipline::transaction,
                     context_.options.ticket,
                     std::nullopt};
    wait.waited = std::chrono::floor<Duration>(BootClock::now() - begun_);
    if (patience_.deadline != Instant::max())
      wait.patience = std::chrono::ceil<Duration>(std::max(patience_.deadline, BootClock::now()) - BootClock::now());
    if (!rows_are_right()) return;  // it waits as well, only unseen
    try {
      context_.table->waiting().add(wait, {context_.shortly(patience_.deadline), patience_.stop});
    } catch (const Failure& failure) {
      // Where a commit takes longer than that, it is there a moment later; if it is not, that is noticed.
      if (!failure.may_have_run() || planted("late_row_unseen")) return;
      doubtful_ = true;
    }
    seen_ = true;
    context_.queues->revived(waiter_);
    context_.queues->registered(waiter_, WaitQueues::RowKind::depended_on);
    context_.notifier.attend();
    detector_.begin();
  }

  Context& context_;
  const Name& name_;
  const Patience patience_;
  const Instant begun_ = BootClock::now();
  const std::string owner_;
  JobRef job_{};
  std::string actor_{};
  const WaitQueues::WaiterPtr waiter_;
  PollingPauses polling_;
  DeadlockDetector detector_{};
  KnownWaiter known_{};
  Instant marks_again_{};
  bool has_row_ = false, seen_ = false;  // has_row_: or may have one; seen_: others can see it, as far as is known
  bool doubtful_ = false;                // it may be written only now
};

}  // namespace dlock::engine
