// This file knows the rounds of the keeper, and the three outcomes of a renewal.
#include "engine/keeper.hpp"

#include "engine/backoff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <unordered_set>
#include <vector>

namespace dlock::engine {
namespace {

using Grants = std::vector<std::shared_ptr<Held>>;

struct Leftover {
  std::string name, owner;
  Instant until, next;
};

constexpr Duration least_patience = std::chrono::milliseconds{100};

// How long before its time a lease may join a round that leaves anyway.
Duration early(const Held& held) {
  const auto terms = held.terms();
  return std::min(terms.lease / 12, terms.renew_every.value_or(terms.lease) / 4);
}

Duration retry_pause(const Held& held) {
  return jittered(std::min<Duration>(std::chrono::seconds{1}, held.terms().lease / 10));
}

bool trust_low(const Held& held, Instant now) { return held.remaining(now) < held.terms().lease / 3; }

}  // namespace

struct Keeper::State {
  State(std::shared_ptr<store::LockTable> the_table, std::shared_ptr<Reporter> news, Duration timeout)
      : table(std::move(the_table)), reporter(std::move(news)), request_timeout(timeout) {}

  const std::shared_ptr<store::LockTable> table;
  const std::shared_ptr<Reporter> reporter;
  const Duration request_timeout;
  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex:
  Schedule schedule;
  std::unordered_set<Held*> in_round;  // taken out of the schedule while a round is under way
  std::vector<Leftover> leftovers;
  Instant sleeping_until = Instant::min();  // min: awake, and about to look
  bool closing = false;

  // Wakes the thread only if it would sleep too long: a wake-up costs more than the rest of an acquire.
  void wake_for(Instant due) {
    if (due < sleeping_until) changed.notify_one();
  }

  Instant next_due() const {
    auto due = schedule.empty() ? Instant::max() : schedule.begin()->first;
    for (const auto& leftover : leftovers) due = std::min(due, leftover.next);
    return due;
  }

  // Takes out what is due, and what will be soon.
  Grants due_now(Instant now) {
    Grants due;
    for (auto entry = schedule.begin(); entry != schedule.end();) {
      auto& held = entry->second;
      if (entry->first > now && entry->first - now > early(*held)) {
        // Entries are ordered by their time, so one that is too early by an hour ends the search.
        if (entry->first - now > std::chrono::hours{1}) break;
        ++entry;
        continue;
      }
      held->in_keeper.reset();
      if (held->valid(now)) {
        in_round.insert(held.get());
        due.push_back(std::move(held));
      }
      entry = schedule.erase(entry);
    }
    return due;
  }

  void put_back(const std::shared_ptr<Held>& held, Instant when) {
    const std::lock_guard guard(mutex);
    if (in_round.erase(held.get()) == 0) return;  // forgotten meanwhile
    held->in_keeper = schedule.emplace(when, held);
  }

  void drop(const std::shared_ptr<Held>& held) {
    const std::lock_guard guard(mutex);
    in_round.erase(held.get());
  }

  // A round that hangs takes a third of the trust that is left at most, so that there is time to warn and for others.
  Deadline round_deadline(const Grants& due, Instant now) const {
    auto least = request_timeout;
    for (const auto& held : due) least = std::min(least, std::max<Duration>(held->remaining(now) / 3, least_patience));
    return later(now, least);
  }

  void renew(const Grants& due) {
    std::vector<store::Claim> claims;
    claims.reserve(due.size());
    for (const auto& held : due) claims.push_back(held->claim());
    const auto sent = BootClock::now();
    try {
      const auto outcomes = table->renew(claims, round_deadline(due, sent));
      for (std::size_t i = 0; i < due.size(); ++i) settle(due[i], outcomes[i], sent);
    } catch (const Failure& failure) {
      // Whatever it was: as long as trust lasts, a failed renewal only means "ask again".
      reporter->tell(Event::Kind::retried, {}, {}, {}, fmt::format("renewal: {}", failure.what()));
      for (const auto& held : due) try_again(held, failure.what());
    }
  }

  void settle(const std::shared_ptr<Held>& held, store::Renewed outcome, Instant sent) {
    switch (outcome) {
      case store::Renewed::yes:
        held->confirmed(sent);
        held->warned = false;
        put_back(held, held->next_renewal());
        return;
      case store::Renewed::not_known_yet:
        try_again(held, "the row is locked by another transaction");
        return;
      case store::Renewed::lost:
        drop(held);
        if (held->ended()) return;
        lost(held);
        return;
    }
  }

  void try_again(const std::shared_ptr<Held>& held, const char* why) {
    const auto now = BootClock::now();
    if (trust_low(*held, now) && held->valid(now) && !held->warned) {
      held->warned = true;
      reporter->tell(Event::Kind::trust_low, held->name(), held->token(), held->remaining(now), why);
    }
    put_back(held, later(now, retry_pause(*held)));
  }

  // Looks into a refused renewal: a release by force leaves the row free with its token moved on, and says so in it.
  void lost(const std::shared_ptr<Held>& held) {
    auto loss = Loss::refused;
    std::string text = "the row is gone";
    try {
      const auto row = table->inspect(held->name(), later(BootClock::now(), request_timeout));
      if (row && row->owner.empty()) {
        text = fmt::format("the lock is free under token {}", number(row->token));
        if (number(row->token) == number(held->token()) + 1 && row->label == forced_label) {
          loss = Loss::forced;
          text = "it was released by force";
        }
      } else if (row) {
        text = fmt::format("it is held by {} ({}) under token {}", row->label, row->node, number(row->token));
      }
    } catch (const Failure& failure) {
      text = fmt::format("renewal was refused ({})", failure.what());
    }
    if (held->lose(loss)) reporter->tell_loss(held, std::move(text));
  }

  static constexpr std::string_view forced_label = "released by force";

  // Frees what could not be freed in time. Called without the mutex.
  void free_leftovers() {
    std::vector<Leftover> due;
    {
      const std::lock_guard guard(mutex);
      const auto now = BootClock::now();
      const auto ready = std::partition(leftovers.begin(), leftovers.end(),
                                        [&](const Leftover& leftover) { return leftover.next > now; });
      due.assign(std::make_move_iterator(ready), std::make_move_iterator(leftovers.end()));
      leftovers.erase(ready, leftovers.end());
    }
    for (auto& leftover : due) {
      try {
        table->withdraw(leftover.name, leftover.owner, later(BootClock::now(), request_timeout));
      } catch (const Failure&) {
        leftover.next = later(BootClock::now(), jittered(std::chrono::seconds{1}));
        if (leftover.next >= leftover.until) continue;  // its lease is over
        const std::lock_guard guard(mutex);
        leftovers.push_back(std::move(leftover));
      }
    }
  }

  void run() {
    for (;;) {
      Grants due;
      {
        std::unique_lock guard(mutex);
        while (!closing && next_due() > BootClock::now()) {
          sleeping_until = next_due();
          if (sleeping_until == Instant::max()) changed.wait(guard);
          else changed.wait_until(guard, sleeping_until);
        }
        sleeping_until = Instant::min();
        if (closing) return;
        due = due_now(BootClock::now());
      }
      if (!due.empty()) renew(due);
      free_leftovers();
    }
  }
};

Keeper::Keeper(std::shared_ptr<store::LockTable> table, std::shared_ptr<Reporter> reporter, Duration request_timeout)
    : state_(std::make_shared<State>(std::move(table), std::move(reporter), request_timeout)) {}

Keeper::~Keeper() {
  {
    const std::lock_guard guard(state_->mutex);
    state_->closing = true;
  }
  state_->changed.notify_all();
}

// Called with the state's mutex held.
void Keeper::ensure_running() {
  if (!thread_.started()) thread_.start([state = state_] { state->run(); });
}

void Keeper::watch(const std::shared_ptr<Held>& held) {
  if (!held->renewable()) return;
  const std::lock_guard guard(state_->mutex);
  state_->in_round.erase(held.get());  // a round under way finds it gone, and lets it be
  if (held->in_keeper) state_->schedule.erase(*held->in_keeper);
  held->in_keeper = state_->schedule.emplace(held->next_renewal(), held);
  ensure_running();
  state_->wake_for(held->next_renewal());
}

void Keeper::forget(const std::shared_ptr<Held>& held) {
  const std::lock_guard guard(state_->mutex);
  state_->in_round.erase(held.get());
  if (!held->in_keeper) return;
  state_->schedule.erase(*held->in_keeper);
  held->in_keeper.reset();
}

void Keeper::free_later(std::string name, std::string owner, Instant until) {
  const std::lock_guard guard(state_->mutex);
  state_->leftovers.push_back({std::move(name), std::move(owner), until, BootClock::now()});
  ensure_running();
  state_->wake_for(Instant::min());
}

}  // namespace dlock::engine
