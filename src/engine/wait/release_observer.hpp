// Waits for news of a name without standing in line for it.
#pragma once

#include "engine/backoff.hpp"
#include "engine/core.hpp"
#include "engine/retry.hpp"
#include "engine/wait/deadlock_detector.hpp"
#include "engine/wait/known_waiters.hpp"

#include <algorithm>

namespace dlock {
inline namespace v0 {

// Threads: one. `owner` and `actor`: as whom it waits, where others are to see it.
class Core::ReleaseObserver {
  template <class Call>
  auto ask(Call question) {
    bool ignored = false;
    return core_.retry(core_.answer_by(patience_.deadline), patience_.stop, ignored, std::move(question));
  }

 public:
  ReleaseObserver(Core& core, const Name& name, const Patience& patience, std::string owner = {})
      : core_(core),
        name_(name),
        patience_(patience),
        owner_(std::move(owner)),
        waiter_(core.queues_->observe(name.text(), owner_)),
        polling_(core.within(core.options_.polling.first, 1), core.options_.polling.longest) {
    core_.notifier_.attend();
  }
  ~ReleaseObserver() {
    core_.queues_->leave(waiter_);
    if (has_row_) core_.notifier_.discard_later(name_.text(), owner_);
    if (marked_until_ == Instant{} || patience_.stop.stop_requested() || core_.queues_->anybody(name_.text())) return;
    try {
      core_.table_->waiting().unwant(name_.text(), later(BootClock::now(), core_.options_.timeouts.release));
    } catch (const std::exception&) {  // it is over in seconds
    }
  }
  ReleaseObserver(const ReleaseObserver&) = delete;
  ReleaseObserver& operator=(const ReleaseObserver&) = delete;

  // Before each look: what is heard from here on ends the next rest().
  void attend() {
    core_.notifier_.ensure_running();
    const bool dead = core_.queues_->attend(waiter_).dead;
    if (has_row_ && (dead || !seen_) && BootClock::now() < patience_.deadline) enroll();
  }

  // Marks the name as wanted, if that is of use and it does not know that it is. True: it did, and another look is due.
  bool marks() {
    const auto now = BootClock::now();
    if (!core_.marks() || now < marked_until_) return false;
    marked_until_ = later(now, mark_length / 2);
    core_.mark(name_, {core_.shortly(patience_.deadline), patience_.stop});
    return true;
  }

  // Shows that `actor`, who may hold something, waits here: from now on a deadlock is found. `thread`: whose it is, if it
  // has no `job`.
  void enroll(engine::JobRef thread, const Job& job, std::string_view actor) {
    job_ = std::move(thread);
    known_.waits_as(owner_, job.name());
    actor_ = actor;
    has_row_ = true;
    enroll();
  }

  // Until something may have changed. `opens_in`: when it does so by itself; 0: nobody knows. Throws Error{deadlock}.
  void rest(Duration opens_in, std::string holder) {
    if (core_.queues_->saw(waiter_, std::move(holder))) core_.notifier_.attend();
    auto pause = polling_.next();
    if (opens_in > Duration{}) pause = std::min(pause, opens_in);
    const auto until = std::min(later(BootClock::now(), pause), detector_.next());
    core_.queues_->rest(waiter_, until, patience_.deadline, patience_.stop);
    if (BootClock::now() >= detector_.next())
      ask([&](Deadline deadline) {
        put_rows_right(job_, deadline);
        return detector_.look(*core_.table_, actor_, owner_, deadline);
      });
  }

 private:
  // Again before each look until it has succeeded, and whenever its row has died.
  void enroll() {
    seen_ = false;
    store::Wait wait{name_.text(),          owner_,      core_.options_.node,
                     core_.options_.label,  actor_,      store::Wait::Mode::transaction,
                     core_.options_.ticket, std::nullopt};
    wait.waited = std::chrono::floor<Duration>(BootClock::now() - begun_);
    if (patience_.deadline != Instant::max())
      wait.patience = std::chrono::ceil<Duration>(std::max(patience_.deadline, BootClock::now()) - BootClock::now());
    try {
      put_rows_right(job_, {core_.shortly(patience_.deadline), patience_.stop});
      core_.table_->waiting().enroll(wait, {core_.shortly(patience_.deadline), patience_.stop});
    } catch (const Failure&) {  // it waits as well, only unseen
      return;
    }
    seen_ = true;
    core_.queues_->revived(waiter_);
    core_.queues_->registered(waiter_, engine::WaitQueues::RowKind::depended_on);
    core_.notifier_.attend();
    detector_.begin();
  }

  Core& core_;
  const Name& name_;
  const Patience patience_;
  const Instant begun_ = BootClock::now();
  const std::string owner_;
  engine::JobRef job_{};
  std::string actor_{};
  const engine::WaitQueues::WaiterPtr waiter_;
  engine::PollingPauses polling_;
  engine::DeadlockDetector detector_{};
  engine::KnownWaiter known_{};
  Instant marked_until_{};
  bool has_row_ = false, seen_ = false;  // has_row_: or may have one; seen_: others can see it
};

}  // namespace v0
}  // namespace dlock
