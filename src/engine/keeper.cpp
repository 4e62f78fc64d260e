// This file knows the rounds of the keeper, and the three outcomes of a renewal.
#include "engine/keeper.hpp"

#include "engine/alarm.hpp"
#include "engine/backoff.hpp"
#include "engine/leftovers.hpp"
#include "engine/renewal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace dlock::engine {
namespace {

using Grants = std::vector<std::shared_ptr<Held>>;

constexpr Duration least_patience = std::chrono::milliseconds{100};

// What a lease may take of a round's time: the database needs a part of it.
constexpr Duration patience_a_lease = std::chrono::microseconds{50};

// For what is not a renewal and must not hold one up.
constexpr Duration most_aside = std::chrono::seconds{1}, least_aside = std::chrono::milliseconds{250};

bool trust_low(const Held& held, Instant now) { return held.remaining(now) < held.terms().lease / 3; }

Share new_share() {
  constexpr Duration::rep steps = 1000;
  return smallest_share + (largest_share - smallest_share) *
                              static_cast<Share>(between(Duration{}, Duration{steps}).count()) / steps;
}

}  // namespace

struct Keeper::State {
  State(std::shared_ptr<store::LockTable> the_table, std::shared_ptr<Reporter> news, Duration timeout)
      : table(std::move(the_table)), reporter(std::move(news)), request_timeout(timeout) {}

  const std::shared_ptr<store::LockTable> table;
  const std::shared_ptr<Reporter> reporter;
  const Duration request_timeout;
  Alarm alarm;
  std::mutex mutex;
  std::condition_variable round_over;
  // Guarded by mutex:
  // The same leases: who may join a round, and when one must leave.
  Agenda by_earliest{Agenda::Kind::earliest}, by_latest{Agenda::Kind::latest};
  std::uint64_t round = 0, over = 0;  // how many rounds have begun, and how many have ended
  Share share = new_share();
  Leftovers leftovers;
  Instant sleeping_until = Instant::min();  // min: awake, and about to look
  bool closing = false;

  // Makes the thread wake up in time; that it sleeps too short is no harm.
  void wake_for(Instant due) {
    if (due >= sleeping_until) return;
    sleeping_until = due;
    alarm.set(due);
  }

  Instant next_renewal() const { return by_latest.first(); }

  Instant next_due() const {
    return std::min(next_renewal(), leftovers.next());
  }

  void schedule(const std::shared_ptr<Held>& held, const Window& window) {
    auto& upkeep = held->upkeep;
    if (!upkeep.watched || upkeep.held_back > 0) return;
    by_earliest.put(held, window.earliest);
    by_latest.put(held, window.latest);
    wake_for(window.latest);
  }

  void unschedule(Held& held) {
    by_latest.take(held);
    by_earliest.take(held);
  }

  // Takes out what may be renewed now, if anything must.
  Grants due_now(Instant now) {
    Grants due;
    if (next_renewal() > now) return due;
    ++round;
    while (!by_earliest.empty() && by_earliest.first() <= now) {
      const auto held = by_earliest.front();
      unschedule(*held);
      held->upkeep.round = round;
      held->upkeep.in_round = true;
      due.push_back(held);
    }
    share = new_share();
    return due;
  }

  void put_back(const std::shared_ptr<Held>& held, const Window& window) {
    const std::lock_guard guard(mutex);
    if (!held->upkeep.in_round) return;  // forgotten meanwhile, or scheduled anew
    held->upkeep.in_round = false;
    schedule(held, window);
  }

  void drop(const std::shared_ptr<Held>& held) {
    const std::lock_guard guard(mutex);
    held->upkeep.in_round = held->upkeep.watched = false;
  }

  Share share_now() {
    const std::lock_guard guard(mutex);
    return share;
  }

  // A round that hangs takes a third of the trust that is left at most, so that there is time to warn and for others.
  Deadline round_deadline(const Held& held, Instant now, std::size_t size) const {
    const auto least = least_patience + patience_a_lease * static_cast<Duration::rep>(size);
    return later(now, std::min(request_timeout, std::max<Duration>(held.remaining(now) / 3, least)));
  }

  // Takes out what is not to be renewed any more.
  void drop_ended(Grants& due, Instant now) {
    std::erase_if(due, [&, size = due.size()](const auto& held) {
      if (!held->valid(now)) {
        drop(held);
        run_out(held);
        return true;
      }
      // Not before the round must be over, so that a renewal that arrives late is still early enough.
      if (round_deadline(*held, now, size) <= held->last_renewal()) return false;
      drop(held);
      held->keep_no_longer();
      reporter->tell(Event::Kind::trust_low, held->name(), held->token(), held->remaining(now),
                     "renewal has ended: LockOptions::max_hold");
      return true;
    });
  }

  void renew(Grants due) {
    const auto sent = BootClock::now();
    drop_ended(due, sent);
    if (due.empty()) return;
    auto deadline = Deadline::max();
    for (const auto& held : due) deadline = std::min(deadline, round_deadline(*held, sent, due.size()));
    std::vector<store::Claim> claims;
    claims.reserve(due.size());
    for (const auto& held : due) claims.push_back(held->claim());
    try {
      const auto outcomes = table->renew(claims, deadline);
      Grants refused;
      const auto next = share_now();
      for (std::size_t i = 0; i < due.size(); ++i) settle(due[i], claims[i].lease, outcomes[i], sent, next, refused);
      look_into(refused);
    } catch (const Failure& failure) {
      // Whatever it was: as long as trust lasts, a failed renewal only means "ask again".
      reporter->tell(Event::Kind::retried, {}, {}, {}, fmt::format("renewal: {}", failure.what()));
      const auto next = share_now();
      for (const auto& held : due) try_again(held, next, failure.what());
    }
  }

  void settle(const std::shared_ptr<Held>& held, Duration lease, store::Renewed outcome, Instant sent, Share next,
              Grants& refused) {
    switch (outcome) {
      case store::Renewed::yes:
        if (!held->confirmed(sent, lease)) {
          drop(held);
          run_out(held);
          return;
        }
        held->upkeep.warned = false;
        put_back(held, held->renewal(next));
        return;
      case store::Renewed::not_known_yet:
        try_again(held, next, "the row is locked by another transaction");
        return;
      case store::Renewed::lost:
        drop(held);
        if (!held->ended()) refused.push_back(held);
        return;
    }
  }

  void try_again(const std::shared_ptr<Held>& held, Share next, const char* why) {
    const auto now = BootClock::now();
    if (held->valid(now) && trust_low(*held, now) && !held->upkeep.warned) {
      held->upkeep.warned = true;
      reporter->tell(Event::Kind::trust_low, held->name(), held->token(), held->remaining(now), why);
    }
    put_back(held, retry_window(now, held->terms().lease, next));
  }

  void lost(const std::shared_ptr<Held>& held, Loss loss, std::string text) {
    if (held->lose(loss)) reporter->tell_loss(held, std::move(text));
  }

  void run_out(const std::shared_ptr<Held>& held) { lost(held, held->running_out(), in_words(held->running_out())); }

  // How long something that is not a renewal may take now.
  Deadline aside() {
    const std::lock_guard guard(mutex);
    const auto now = BootClock::now();
    const auto most = std::min(later(now, std::min(request_timeout, most_aside)), next_renewal());
    return std::max(most, later(now, std::min(request_timeout, least_aside)));
  }

  // Looks into refused renewals, to tell why. What cannot be looked into in time is lost all the same.
  void look_into(const Grants& refused) {
    if (refused.empty()) return;
    const auto deadline = aside();
    for (const auto& held : refused) {
      auto loss = Loss::refused;
      std::string text = "renewal was refused";
      try {
        if (BootClock::now() < deadline) text = reason(*held, deadline, loss);
      } catch (const Failure& failure) {
        text = fmt::format("renewal was refused ({})", failure.what());
      }
      lost(held, loss, std::move(text));
    }
  }

  // A release by force leaves the row free with its token moved on, and says so in it.
  std::string reason(const Held& held, Deadline deadline, Loss& loss) const {
    const auto row = table->inspect(held.name(), deadline);
    if (!row) return "the row is gone";
    if (!row->owner.empty() && row->token == held.token())
      return fmt::format("it was adopted by {} ({})", row->label, row->node);
    if (!row->owner.empty())
      return fmt::format("it is held by {} ({}) under token {}", row->label, row->node, number(row->token));
    if (number(row->token) != number(held.token()) + 1 || row->label != forced_label)
      return fmt::format("the lock is free under token {}", number(row->token));
    loss = Loss::forced;
    return "it was released by force";
  }

  static constexpr std::string_view forced_label = "released by force";

  // Frees what one of them holds, if it is due to be looked at: one at a time, so that the next renewal need not wait
  // for all of them.
  void look_for_leftover() {
    std::optional<Leftover> due;
    {
      const std::lock_guard guard(mutex);
      due = leftovers.take_due(BootClock::now());
    }
    if (!due) return;
    bool failed = false;
    try {
      free(*due);
      due->freed = true;
    } catch (const Failure&) {
      failed = true;
    }
    const std::lock_guard guard(mutex);
    leftovers.was_looked_for(*due, failed, BootClock::now());
  }

  void free(const Leftover& leftover) {
    if (!leftover.entry.empty()) {
      const bool nobodys = table->leave(leftover.name, leftover.entry, aside()).owner.empty();
      if (nobodys && !leftover.freed) table->withdraw(leftover.name, leftover.owner, aside());
    } else if (!leftover.freed) {
      table->withdraw(leftover.name, leftover.owner, aside());
    } else if (const auto outlook = table->look(leftover.name, 0, aside());
               outlook.owner == leftover.owner && outlook.token != leftover.kept) {
      const store::Claim claim{leftover.name, leftover.owner, outlook.token};
      table->release({&claim, 1}, aside());
    }
  }

  void run() {
    for (;;) {
      Grants due;
      bool early = false;
      {
        const std::lock_guard guard(mutex);
        if (closing) return;
        const auto now = BootClock::now();
        early = next_due() > now;
        sleeping_until = early ? next_due() : Instant::min();
        if (early) alarm.set(sleeping_until);
        else due = due_now(now);
      }
      if (early) {
        alarm.wait();
        continue;
      }
      if (!due.empty()) {
        renew(std::move(due));
        const std::lock_guard guard(mutex);
        over = round;
        round_over.notify_all();
      }
      look_for_leftover();
    }
  }
};

Keeper::Keeper(std::shared_ptr<store::LockTable> table, std::shared_ptr<Reporter> reporter, Duration request_timeout)
    : state_(std::make_shared<State>(std::move(table), std::move(reporter), request_timeout)) {}

Keeper::~Keeper() { close(); }

void Keeper::close() noexcept {
  const std::lock_guard guard(state_->mutex);
  state_->closing = true;
  state_->alarm.ring();
  state_->round_over.notify_all();
}

// Called with the state's mutex held.
void Keeper::ensure_running() {
  if (!thread_.started()) thread_.start([state = state_] { state->run(); });
}

void Keeper::watch(const std::shared_ptr<Held>& held) {
  const std::lock_guard guard(state_->mutex);
  held->upkeep.watched = held->renewable();
  held->upkeep.in_round = false;  // a round under way finds it gone, and lets it be
  state_->unschedule(*held);
  if (!held->upkeep.watched) return;
  state_->schedule(held, held->renewal(state_->share));
  ensure_running();
}

void Keeper::forget(const std::shared_ptr<Held>& held) {
  const std::lock_guard guard(state_->mutex);
  held->upkeep.watched = held->upkeep.in_round = false;
  state_->unschedule(*held);
}

bool Keeper::hold_back(const std::shared_ptr<Held>& held, Deadline deadline) {
  std::unique_lock guard(state_->mutex);
  ++held->upkeep.held_back;
  state_->unschedule(*held);
  // The end of time itself overflows in the standard library's arithmetic; no round takes anything like a day.
  const auto until = std::min(deadline, later(BootClock::now(), std::chrono::hours{24}));
  return state_->round_over.wait_until(
      guard, until, [&] { return state_->over >= held->upkeep.round || state_->closing; });
}

void Keeper::resume(const std::shared_ptr<Held>& held) {
  const std::lock_guard guard(state_->mutex);
  if (held->upkeep.held_back == 0 || --held->upkeep.held_back > 0 || held->upkeep.in_round) return;
  state_->schedule(held, held->renewal(state_->share));
}

void Keeper::free_later(Leftover leftover) {
  const std::lock_guard guard(state_->mutex);
  state_->wake_for(state_->leftovers.add(std::move(leftover), BootClock::now()));
  ensure_running();
}

bool Keeper::has_leftovers(std::string_view name) const {
  if (state_->leftovers.none()) return false;
  const std::lock_guard guard(state_->mutex);
  return state_->leftovers.has(name);
}

std::optional<Leftover> Keeper::leftover(std::string_view name, std::string_view owner, Token token) const {
  if (state_->leftovers.none()) return std::nullopt;
  const std::lock_guard guard(state_->mutex);
  return state_->leftovers.holding(name, owner, token);
}

}  // namespace dlock::engine
