// This file knows how locks meet a caller's transaction: locking a name for as long as it lasts, and proving in it that
// a lease is still held.
#include "engine/actor.hpp"
#include "engine/core.hpp"
#include "engine/persist.hpp"
#include "engine/watch.hpp"
#include "store/visit.hpp"
#include "types/owner.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace dlock {
inline namespace v0 {
namespace {

using engine::Held;

// The failure of a statement inside a caller's transaction, where nothing may be tried again.
Error told_in_transaction(const Failure& failure) {
  switch (failure.cause()) {
    case Cause::locked:
    case Cause::deadlock:
    case Cause::serialization:
      return Error(Fault::conflict,
                   fmt::format("{}; roll the transaction back and run it again", failure.what()), failure.code());
    default: return engine::told(failure, false);
  }
}

template <class Work>
auto in_transaction(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const Failure& failure) {
    throw told_in_transaction(failure);
  }
}

// Keeps the keeper from renewing a lease until the fence has answered: a renewal after the transaction's snapshot would
// end it with conflict.
class Announced {
 public:
  Announced(engine::Keeper& keeper, const std::shared_ptr<Held>& held, Duration patience) : keeper_(keeper), held_(held) {
    // A renewal that hangs longer than that is no reason not to try: at worst the transaction runs again.
    keeper_.hold_back(held_, later(BootClock::now(), patience));
  }
  ~Announced() { keeper_.resume(held_); }
  Announced(const Announced&) = delete;
  Announced& operator=(const Announced&) = delete;

 private:
  engine::Keeper& keeper_;
  const std::shared_ptr<Held>& held_;
};

void commit(store::Visit& visit) {
  try {
    visit.commit();
  } catch (const Failure& failure) {
    if (failure.may_have_run()) throw engine::told(failure, true);
    throw told_in_transaction(failure);
  }
}

}  // namespace

std::optional<Token> Core::try_lock_in(const TransactionRef& transaction, const Name& name, Deadline deadline,
                                       const LockOptions* lease) {
  store::TakeAsk ask{name.text(), Token{}};
  std::string owner = random_identity();
  const auto& job = engine::job_of_this_thread();
  const engine::ActorName actor(half_, job->half);
  auto idle_bound = options_.lease;
  if (lease != nullptr) {
    idle_bound = terms_of(*lease).lease;
    ask.owner = owner;
    ask.node = options_.node;
    ask.label = lease->label ? std::string_view{*lease->label} : options_.label;
    ask.actor = actor.view();
    ask.lease = idle_bound;
    ask.at_least = lease->at_least;
    ask.metadata = lease->metadata;
  }
  const auto visit = in_transaction([&] { return table_->visit(transaction); });
  in_transaction([&] { visit->check(); });

  const Patience patience{deadline, {}, true};
  std::optional<Watch> watch;
  for (bool attempted = false;;) {
    if (watch) watch->attend();
    // Never locked in order to look: a row that was examined in vain can stay locked until the transaction ends.
    const auto asked_at = BootClock::now();
    const auto peeked = persist(answer_by(deadline), [&](Deadline until) { return table_->peek(name.text(), until); });
    if (peeked.free) {
      if (!peeked.there) persist(answer_by(deadline), [&](Deadline until) { table_->make(name.text(), until); });
      ask.floor = peeked.floor;
      if (const auto token = in_transaction([&] { return visit->take(ask); })) {
        // As in an acquire: the floor may have been raised since, if this took very long.
        if (BootClock::now() - asked_at > options_.grace / 2 && !above_floor(*token, answer_by(deadline)))
          throw Error(Fault::conflict, fmt::format("locking {} took longer than half of EngineOptions::grace; roll the "
                                                   "transaction back and run it again",
                                                   in_quotes(name.text())));
        if (options_.bound_idle) in_transaction([&] { visit->bound_idle(idle_bound); });
        return token;
      }
      if (!in_transaction([&] { return visit->sees(name.text()); }))
        throw Error(Fault::conflict,
                    fmt::format("the row of {} was made after the transaction's snapshot; roll the transaction back and "
                                "run it again, with the lock first",
                                in_quotes(name.text())));
      if (!attempted && BootClock::now() < deadline) {
        attempted = true;
        continue;  // look at once whether it was taken, or is only locked
      }
    } else if (attempted || visit->writes_alone()) {
      // Taken between the look and the attempt, which may have left its row locked here; or nobody can release it while
      // this transaction writes. Waiting on would make its holder lose it.
      return std::nullopt;
    }
    attempted = false;
    const auto now = BootClock::now();
    if (now >= deadline) return std::nullopt;
    if (!watch) {
      watch.emplace(*this, name, patience, owner);
      if (job->holds.load() > 0) watch->enroll(actor.view());
    }
    if (!peeked.free && watch->marks()) continue;  // and look again
    watch->rest(peeked.free ? Duration{} : std::max(peeked.opens_in, Duration{1}), {});
  }
}

// Runs the fence's statement. Throws lost if it is refused, and whatever went wrong: the transaction must not be
// committed then, and where the options say so, cannot.
void Core::prove(store::Visit& visit, const std::shared_ptr<Held>& held, const FenceOptions& options) {
  constexpr Duration least_wait = std::chrono::milliseconds{50};
  const auto wait = std::clamp(held->remaining(BootClock::now()), least_wait, std::max(least_wait, options_.request_timeout));
  bool proved = false;
  try {
    proved = in_transaction([&] { return visit.fence(held->claim(), wait); });
  } catch (...) {
    if (options.doom) visit.doom();
    throw;
  }
  if (!proved) {
    if (options.doom) visit.doom();
    if (held->lose(Loss::refused)) reporter_->tell_loss(held, "a fence was refused: the lease is no longer ours");
    throw Error(Fault::lost, fmt::format("the lock {} (token {}) is lost: its fence was refused; roll the transaction back",
                                         in_quotes(held->name()), number(held->token())));
  }
  if (options_.bound_idle) in_transaction([&] { visit.bound_idle(held->terms().lease); });
}

void Core::fence(const std::shared_ptr<Held>& held, const TransactionRef& transaction, const FenceOptions& options) {
  const auto visit = in_transaction([&] { return table_->visit(transaction); });
  const Announced announced(keeper_, held, options_.request_timeout);
  in_transaction([&] { visit->check(); });
  prove(*visit, held, options);
}

void Core::with_fence(const std::shared_ptr<Held>& held, const TransactionRef& transaction,
                      const std::function<void()>& work, const FenceOptions& options) {
  const auto visit = in_transaction([&] { return table_->visit(transaction); });
  engine::Backoff backoff(std::chrono::milliseconds{200});
  for (unsigned attempt = 1;; ++attempt) {
    try {
      std::optional<Announced> announced(std::in_place, keeper_, held, options_.request_timeout);
      in_transaction([&] { visit->begin(options_.request_timeout); });
      try {
        const auto sent = BootClock::now();
        prove(*visit, held, options);
        announced.reset();
        work();
        commit(*visit);
        // Committed, and with it the renewal in the fence: of the row, not of a node's single entry.
        if (held->entry().empty()) held->confirmed(sent);
        return;
      } catch (...) {
        visit->roll_back();
        throw;
      }
    } catch (const Error& error) {
      if (error.fault() != Fault::conflict || attempt >= options.attempts) throw;
      reporter_->tell(Event::Kind::retried, held->name(), held->token(), {}, error.what());
      engine::pause_until(later(BootClock::now(), backoff.next()), {});
    }
  }
}

}  // namespace v0
}  // namespace dlock
