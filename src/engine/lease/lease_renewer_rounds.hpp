// The rounds of the renewer: which leases go together, how long a round may take, when max_hold ends renewing, what the
// three outcomes of a renewal lead to, and when trust_low is told. When a lease is due: renewal.hpp.
#pragma once

#include "engine/backoff.hpp"
#include "engine/lease/boot_timer.hpp"
#include "engine/lease/lease_renewer.hpp"
#include "engine/lease/leftovers.hpp"
#include "engine/lease/refusal.hpp"
#include "engine/lease/renewal.hpp"
#include "engine/wait/wait_queues.hpp"
#include "types/mutant.hpp"
#include "types/worker.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace dlock::engine {

// Threads: run() on the renewer's own; what REQUIRES the mutex, on any.
struct LeaseRenewer::State : Worker {
  using Grants = std::vector<std::shared_ptr<Lease>>;

  static constexpr Duration farewell = std::chrono::seconds{1};
  // After what no round can go on with.
  static constexpr Duration until_again = std::chrono::milliseconds{100};

  static constexpr Duration least_patience = std::chrono::milliseconds{100};
  // A renewal that needs a new connection takes more, one that does not takes less.
  static constexpr int least_trips = 4;

  // What a lease may take of a round's time: the database needs a part of it.
  static constexpr Duration patience_a_lease = std::chrono::microseconds{50};

  // For what is not a renewal and must not hold one up.
  static constexpr Duration most_aside = std::chrono::seconds{1}, least_aside = std::chrono::milliseconds{250};

  static bool trust_low(const Lease& held, Instant now) { return held.remaining(now) < held.terms().asked() / 3; }

  static Share new_share() {
    constexpr Duration::rep steps = 1000;
    return smallest_share +
           (largest_share - smallest_share) * static_cast<Share>(between(Duration{}, Duration{steps}).count()) / steps;
  }

  State(std::shared_ptr<store::LockTable> the_table, std::shared_ptr<EventQueue> news,
        std::shared_ptr<WaitQueues> the_queues, Duration timeout)
      : table(std::move(the_table)), events(std::move(news)), queues(std::move(the_queues)), request_timeout(timeout) {}

  const std::shared_ptr<store::LockTable> table;
  const std::shared_ptr<EventQueue> events;
  const std::shared_ptr<WaitQueues> queues;  // of who waited for what is freed here, and is somebody else's now
  const Duration request_timeout;
  BootTimer timer;
  // The same leases: who may join a round, and when one must leave.
  DeadlineQueue by_earliest GUARDED_BY(mutex){DeadlineQueue::SortedBy::earliest};
  DeadlineQueue by_latest GUARDED_BY(mutex){DeadlineQueue::SortedBy::latest};
  // How many rounds have begun, and how many have ended.
  std::uint64_t round GUARDED_BY(mutex) = 0, over GUARDED_BY(mutex) = 0;
  Share share GUARDED_BY(mutex) = new_share();
  Leftovers leftovers GUARDED_BY(mutex);
  Instant sleeping_until GUARDED_BY(mutex) = Instant::min();  // min: awake, and about to look
  Grants under_way;  // the thread's own: what a round has taken out, and not settled yet

  // Makes the thread wake up in time; that it sleeps too short is no harm.
  void wake_for(Instant due) REQUIRES(mutex) {
    if (due >= sleeping_until) return;
    sleeping_until = due;
    timer.set(due);
  }

  // Without the mutex, which costs nothing while there are none: Leftovers::none() is for any thread.
  bool no_leftovers() const NO_THREAD_SAFETY_ANALYSIS { return leftovers.none(); }

  Instant next_renewal() const REQUIRES(mutex) { return by_latest.first(); }

  Instant next_due() const REQUIRES(mutex) { return std::min(next_renewal(), leftovers.next()); }

  void schedule(const std::shared_ptr<Lease>& held, const Window& window) REQUIRES(mutex, Lease::renewer_mutex) {
    auto& renewal_state = held->renewal_state;
    if (!renewal_state.watched || renewal_state.pauses > 0) return;
    by_earliest.make_room();
    by_latest.make_room();  // in both, or in neither
    by_earliest.put(held, window.earliest);
    by_latest.put(held, window.latest);
    wake_for(window.latest);
  }

  // Room for what a round has taken out is kept until it is back.
  void shrink() noexcept REQUIRES(mutex) {
    by_latest.shrink();
    by_earliest.shrink();
  }

  void unschedule(Lease& held) REQUIRES(mutex) {
    by_latest.take(held);
    by_earliest.take(held);
  }

  // Takes out what may be renewed now, if anything must.
  Grants due_now(Instant now) REQUIRES(mutex, Lease::renewer_mutex) {
    Grants due;
    if (next_renewal() > now) return due;
    due.reserve(by_earliest.size());
    share = new_share();
    ++round;  // from here on nothing asks for memory
    while (!by_earliest.empty() && by_earliest.first() <= now) {
      const auto held = by_earliest.front();
      due.push_back(held);
      unschedule(*held);
      held->renewal_state.round = round;
      held->renewal_state.in_round = true;
    }
    return due;
  }

  void put_back(const std::shared_ptr<Lease>& held, const Window& window) {
    const MutexLock guard(mutex, Lease::renewer_mutex);
    if (!held->renewal_state.in_round) return;  // removed meanwhile, or scheduled anew
    schedule(held, window);
    held->renewal_state.in_round = false;
  }

  void drop(const std::shared_ptr<Lease>& held) {
    const MutexLock guard(mutex, Lease::renewer_mutex);
    held->renewal_state.in_round = held->renewal_state.watched = false;
  }

  Share share_now() {
    const MutexLock guard(mutex);
    return share;
  }

  Duration at_least(Duration patience) const {
    return planted("renewals_near_only") ? patience : std::max<Duration>(patience, least_trips * table->round_trip());
  }

  // A round that hangs takes a third of the trust that is left at most, so that there is time to warn and for others.
  Instant round_deadline(const Lease& held, Instant now, std::size_t size) const {
    const auto least = at_least(least_patience) + patience_a_lease * static_cast<Duration::rep>(size);
    return later(now, std::min(request_timeout, std::max<Duration>(held.remaining(now) / 3, least)));
  }

  // Takes out what is not to be renewed any more.
  void drop_ended(Grants& due, Instant now) {
    for (auto& held : due) {
      if (!held->valid(now)) {
        drop(held);
        run_out(held);
        held.reset();
      } else if (round_deadline(*held, now, due.size()) > held->last_renewal() && !planted("renewed_past_max_hold")) {
        // Not before the round must be over, so that a renewal that arrives late is still early enough.
        drop(held);
        held->keep_no_longer();
        const auto left = held->remaining(now);
        events->emit(Event::Kind::trust_low, *held, left, "renewal has ended: LockOptions::max_hold");
        held.reset();
      }
    }
    std::erase(due, nullptr);
  }

  // What is under way, each of it until it is settled.
  void renew() {
    auto& due = under_way;
    const auto sent = BootClock::now();
    Grants refused;
    try {
      refused.reserve(due.size());
      drop_ended(due, sent);
      if (due.empty()) return;
      auto deadline = Instant::max();
      for (const auto& held : due) deadline = std::min(deadline, round_deadline(*held, sent, due.size()));
      std::vector<store::LeaseKey> keys;
      keys.reserve(due.size());
      for (const auto& held : due) keys.push_back(held->key());
      const auto outcomes = table->renew(keys, deadline);
      const auto next = share_now();
      for (std::size_t i = 0; i < due.size(); ++i) {
        const auto from = planted("renew_trusts_answer") ? BootClock::now() : sent;
        settle(due[i], keys[i].lease, outcomes[i], from, next, refused);
        due[i].reset();
      }
      look_into(refused);
    } catch (const std::exception& failure) {
      for (const auto& held : refused) lost(held, Loss::refused, {});
      // Whatever it was: as long as trust lasts, a failed renewal only means "ask again".
      put_all_back(failure.what());
      events->emit_retry(failure, "renewal");
    }
  }

  // Throws where there is no memory even for that; then it is to be called again.
  void put_all_back(const char* why) {
    const auto next = share_now();
    for (auto& held : under_way) {
      if (held) try_again(held, next, why);
      held.reset();
    }
    under_way.clear();
  }

  void settle(const std::shared_ptr<Lease>& held, Duration lease, const store::Renewal& renewal, Instant sent,
              Share next, Grants& refused) {
    switch (renewal.outcome) {
      case store::Renewed::yes: {
        std::optional<Duration> overdue;
        if (!held->confirmed(sent, lease, &overdue)) {
          drop(held);
          run_out(held);
          return;
        }
        events->counters().renewals.add();
        if (overdue) events->emit(Event::Kind::renewed_late, *held, *overdue);
        held->warned = false;
        hear(held, renewal.wanted);
        put_back(held, held->renewal(next));
        return;
      }
      case store::Renewed::not_known_yet:
        if (planted("locked_row_is_loss")) {
          drop(held);
          refused.push_back(held);
          return;
        }
        if (const auto asked = BootClock::now(); wants_its_turn(*held, asked))
          if (const auto waited = take_turn(*held, lease); waited && waited->outcome != store::Renewed::not_known_yet)
            return settle(held, lease, *waited, asked, next, refused);
        try_again(held, next, "the row is locked by another transaction");
        return;
      case store::Renewed::lost:
        held->pin();  // not passed on either, until its loss is told
        drop(held);
        if (!held->ended()) refused.push_back(held);
        return;
    }
  }

  // Who comes to a name that many hold, or goes, has its row locked until that is committed: where there are always
  // some, a renewal of all leases, which waits for no row, never has its turn. Then it is asked for by itself, and
  // waits.
  static bool wants_its_turn(const Lease& held, Instant now) {
    return held.mode() != Mode::exclusive && held.remaining(now) < held.terms().asked() / 2 &&
           !planted("no_turn_waited_for");
  }
  std::optional<store::Renewal> take_turn(const Lease& held, Duration lease) {
    try {
      auto key = held.key();
      key.lease = lease;
      return table->extend(key, lease, {}, aside());
    } catch (const Failure&) { return std::nullopt; }  // asked for again like the others
  }

  // Of those who wait in other processes.
  void hear(const std::shared_ptr<Lease>& held, const std::optional<Wanted>& wanted) noexcept {
    if (planted("wanted_not_heard")) return;
    held->wanted_is(wanted);
    if (wanted) events->ask(held);
  }

  void try_again(const std::shared_ptr<Lease>& held, Share next, const char* why) {
    const auto now = BootClock::now();
    if (held->valid(now) && trust_low(*held, now) && !held->warned) {
      held->warned = true;
      events->emit(Event::Kind::trust_low, *held, held->remaining(now), why);
    }
    put_back(held, retry_window(now, held->terms().asked(), next));
  }

  void lost(const std::shared_ptr<Lease>& held, Loss loss, std::string_view text) noexcept {
    if (!held->lose(loss)) return;
    events->emit_loss(held, text);
    if (!planted("loss_wakes_nobody")) queues->let_go_unheard(held->name());
  }

  void run_out(const std::shared_ptr<Lease>& held) { lost(held, held->running_out(), in_words(held->running_out())); }

  // How long something that is not a renewal may take now.
  Instant aside() {
    const MutexLock guard(mutex);
    const auto now = BootClock::now();
    const auto most = std::min(later(now, std::min(request_timeout, most_aside)), next_renewal());
    return std::min(ends_by, std::max(most, later(now, std::min(request_timeout, at_least(least_aside)))));
  }

  // Looks into refused renewals, to tell why. What cannot be looked into in time is lost all the same.
  void look_into(const Grants& refused) {
    if (refused.empty()) return;
    const auto deadline = aside();
    for (const auto& held : refused) {
      auto loss = Loss::refused;
      const auto text = why_refused(*table, *held, deadline, loss);
      lost(held, loss, text);
    }
  }

  // Frees what one of them holds, if it is due to be looked at: one at a time, so that the next renewal need not wait
  // for all of them.
  void look_for_leftover() {
    std::optional<Leftover> due;
    {
      const MutexLock guard(mutex);
      if (!closing) due = leftovers.take_due(BootClock::now());
    }
    if (!due) return;
    bool failed = false;
    try {
      table->drain(Instant::min());
      const bool freed = free_leftover(*table, *due, [this] { return aside(); });
      due->freed = true;
      if (freed && !planted("freed_later_unheard")) queues->wake_head(due->name);
    } catch (const std::exception&) { failed = true; }
    const MutexLock guard(mutex);
    leftovers.was_looked_for(*due, failed, BootClock::now());
  }

  void withdraw_leftovers() {
    std::vector<Leftover> left;
    {
      const MutexLock guard(mutex);
      left = leftovers.take_all();
    }
    if (!left.empty())
      withdraw_at_last(*table, std::move(left), std::min(request_timeout, farewell),
                       [this](Duration longest) { return ends_within(longest); });
  }

  void end_round() {
    under_way.clear();
    const MutexLock guard(mutex);
    shrink();
    over = round;
    changed.notify_all();
  }

  // Also whoever waits for the end of a round.
  void wake() noexcept override {
    timer.wake();
    changed.notify_all();
  }

  // False: it is over.
  bool step() {
    if (!under_way.empty() && !is_closing()) {
      put_all_back("out of memory");
      end_round();
    }
    bool early = false;
    {
      const MutexLock guard(mutex, Lease::renewer_mutex);
      if (closing) return false;
      const auto now = BootClock::now();
      early = next_due() > now;
      sleeping_until = early ? next_due() : Instant::min();
      if (early) timer.set(sleeping_until);
      else under_way = due_now(now);
    }
    if (early) {
      timer.wait();
      return true;
    }
    if (!under_way.empty()) {
      const auto begun = BootClock::now();
      renew();
      events->counters().rounds.add(std::chrono::floor<Duration>(BootClock::now() - begun));
      end_round();
    }
    look_for_leftover();
    return true;
  }

  void run() override {
    for (bool goes_on = true; goes_on;) try {
        goes_on = step();
      } catch (const std::exception&) {  // out of memory: what is due is due again
        timer.set(later(BootClock::now(), until_again));
        timer.wait();
      }
    try {
      withdraw_leftovers();
    } catch (const std::exception&) {  // out of memory: what was given up ends with its lease
    }
  }
};

}  // namespace dlock::engine
