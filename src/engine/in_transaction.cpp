// Locks a name for as long as a caller's transaction lasts, and proves in one that a lease is still held.
#include "engine/in_transaction.hpp"

#include "engine/on_behalf.hpp"
#include "engine/session_id.hpp"
#include "engine/wait/release_observer.hpp"
#include "store/caller_transaction.hpp"
#include "types/mutant.hpp"
#include "types/owner.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace dlock::engine {
namespace {

// What was acknowledged so long ago has arrived on all servers of a cluster, but for one that is in trouble.
constexpr Duration longest_way = std::chrono::seconds{10};
constexpr Duration time_to_look = std::chrono::seconds{2};

// The failure of a statement inside a caller's transaction, where nothing may be tried again.
Error told_in_transaction(const Failure& failure) {
  switch (failure.cause()) {
    case Cause::locked:
    case Cause::deadlock:
    case Cause::serialization:
      return Error(Fault::conflict, fmt::format("{}; roll the transaction back and run it again", failure.what()),
                   failure.code());
    default: return to_error(failure, false);
  }
}

template <class Work>
auto in_transaction(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const Failure& failure) { throw told_in_transaction(failure); }
}

// Keeps the renewer from renewing leases until their fences have answered: a renewal after the transaction's snapshot
// would end it with conflict.
class PausedRenewals {
 public:
  PausedRenewals(LeaseRenewer& renewer, std::span<const std::shared_ptr<Lease>> all, Duration patience)
      : renewer_(renewer), all_(all) {
    // A renewal that hangs longer than that is no reason not to try: at worst the transaction runs again.
    const auto until = later(BootClock::now(), patience);
    if (planted("renewer_not_paused")) return;
    for (const auto& held : all_) renewer_.pause(held, until);
  }
  ~PausedRenewals() {
    for (const auto& held : all_) renewer_.resume(held);
  }
  PausedRenewals(const PausedRenewals&) = delete;
  PausedRenewals& operator=(const PausedRenewals&) = delete;

 private:
  LeaseRenewer& renewer_;
  const std::span<const std::shared_ptr<Lease>> all_;
};

void commit(store::CallerTransaction& caller) {
  try {
    caller.commit();
  } catch (const Failure& failure) {
    if (failure.may_have_run()) throw to_error(failure, true);
    throw told_in_transaction(failure);
  }
}

const void* handle_of(const TransactionRef& transaction) {
  return transaction.native() != nullptr ? transaction.native() : transaction.runner();
}

// A transaction that with_fence has begun on this thread, and ends: what fails in it by a fence of another lock is left
// to it, so that it can be told from what the work has ended.
class Begun {
 public:
  explicit Begun(const TransactionRef& transaction) : handle_(handle_of(transaction)), outer_(innermost_) {
    innermost_ = this;
  }
  ~Begun() { innermost_ = outer_; }
  Begun(const Begun&) = delete;
  Begun& operator=(const Begun&) = delete;

  static Begun* find(const TransactionRef& transaction) {
    auto* begun = innermost_;
    while (begun != nullptr && begun->handle_ != handle_of(transaction)) begun = begun->outer_;
    return begun;
  }

  // It must not be committed any more.
  void spoil(std::exception_ptr why) {
    if (!why_) why_ = std::move(why);
  }
  void throw_if_spoiled() {
    if (why_) std::rethrow_exception(std::exchange(why_, nullptr));
  }

 private:
  static thread_local Begun* innermost_;
  const void* const handle_;
  Begun* const outer_;
  std::exception_ptr why_;
};

thread_local Begun* Begun::innermost_ = nullptr;

}  // namespace

LockInTransaction InTransaction::try_lock_in(const TransactionRef& transaction, const Name& name, const Deadline& until,
                                             const LockOptions* lease) {
  const auto begun = BootClock::now();
  auto grant = lock_in(transaction, name, until, lease);
  if (!grant && !until.stopped()) {
    const LockOptions none;
    const OnBehalf asked(lease != nullptr ? *lease : none);
    context_.tell_end(name, begun, until.at() > begun, Context::said_by(asked.options()));
  }
  return grant;
}

LockInTransaction InTransaction::lock_in(const TransactionRef& transaction, const Name& name, const Deadline& until,
                                         const LockOptions* lease) {
  const auto deadline = until.at();
  const auto& stop = until.stop();
  store::TakeRequest ask{name.text(), Token{}};
  std::string owner = random_identity();
  const auto job = lease != nullptr && lease->job ? lease->job : Job::current();
  const auto thread = job ? JobRef{} : job_of_this_thread();
  const SessionId actor(context_.engine_id, job ? id_of(job.name()) : thread->id);
  auto idle_bound = context_.options.lease;
  if (lease != nullptr) {
    if (lease->mode != Mode::exclusive)
      throw Error(Fault::misuse,
                  fmt::format("a transaction locks a name exclusively, not in mode {}", to_string(lease->mode)));
    const auto terms = context_.policy.terms_of(*lease);
    idle_bound = terms.asked();
    ask.owner = owner;
    ask.node = context_.options.node;
    ask.label = lease->label ? std::string_view{*lease->label} : context_.options.label;
    ask.actor = actor.view();
    ask.lease = terms.lease;
    if (!planted("lock_in_without_at_least")) ask.at_least = lease->at_least;
    ask.metadata = lease->metadata;
  }
  const Patience patience{deadline, stop, true};
  // Before the transaction may be the only one who writes. Where it is already, that is not possible, and not waited
  // for.
  lingering_.end(name.text(), {context_.shortly(BootClock::now()), stop});
  lingering_.await(name, patience);
  const auto caller = in_transaction([&] { return context_.table->caller_transaction(transaction); });
  in_transaction([&] { caller->check(); });

  const auto tries_once = [&] { return in_transaction([&] { return caller->tries_once(); }); };
  const auto in_vain = [&]() -> LockInTransaction {
    in_transaction([&] { caller->confirm(); });
    return {};
  };

  std::optional<ReleaseObserver> observer;
  for (bool attempted = false, caught_up = false;;) {
    if (observer) observer->attend();
    // Never locked in order to look: a row that was examined in vain can stay locked until the transaction ends.
    const auto asked_at = BootClock::now();
    // The transaction that is under way is worth more than a moment: a look may have to open a connection.
    const Deadline answered_by(std::max(context_.answer_by(deadline), later(asked_at, time_to_look)), stop);
    const auto look = [&] {
      return context_.ask_unless_locked(
          name, answered_by, [&](Deadline answer) { return context_.table->row_availability(name.text(), answer); });
    };
    const auto row = look();
    if (row.free) {
      if (!row.there) {
        context_.ask_unless_locked(name, answered_by,
                                   [&](Deadline answer) { context_.table->make(name.text(), answer); });
        catch_up(*caller);
      }
      ask.floor = row.floor;
      if (const auto token = in_transaction([&] { return caller->take(ask); })) {
        if (observer) observer->leave_mark();
        // As in an acquire: the floor may have been raised since, if this took very long.
        if (BootClock::now() - asked_at > context_.options.reaper.grace / 2 &&
            !attempts_.above_floor(*token, answered_by.at()))
          throw Error(Fault::conflict,
                      fmt::format("locking {} took longer than half of EngineOptions::reaper.grace; roll the "
                                  "transaction back and run it again",
                                  in_quotes(name.text())));
        if (context_.options.bound_idle && !planted("lock_in_unbounded"))
          in_transaction([&] { caller->bound_idle(idle_bound); });
        return {Grant{*token, lease != nullptr ? owner : std::string{}}};
      }
      if (!in_transaction([&] { return caller->sees(name.text()); }))
        throw Error(
            Fault::conflict,
            fmt::format("the row of {} was made after the transaction's snapshot; roll the transaction back and "
                        "run it again, with the lock first",
                        in_quotes(name.text())));
      if (!attempted && BootClock::now() < deadline) {
        attempted = true;
        continue;  // look at once whether it was taken, or is only locked
      }
      if (caller->writes_alone() && !planted("waits_for_itself"))
        return in_vain();  // it is this transaction that has it
    } else if ((attempted && (tries_once() || planted("race_lost_once"))) || caller->writes_alone()) {
      // Taken between the look and the attempt, which may have left its row locked here; or nobody can release it while
      // this transaction writes. Waiting on would make its holder lose it.
      return in_vain();
    }
    if (stop.stop_requested()) return in_vain();
    attempted = false;
    const auto now = BootClock::now();
    if (now >= deadline) {
      // Free by the engine's server; the caller's may not have heard of the release.
      if (row.free && !caught_up && catch_up(*caller)) {
        caught_up = true;
        continue;
      }
      in_transaction([&] { caller->confirm(); });
      if (!row.free || !caller->table_locked()) return {std::nullopt, row.free};
      const auto found = context_.blocked(name, Instant::max());
      if (found.rightly || found.text.empty()) return {std::nullopt, found.locked};
      throw Error(Fault::timeout, fmt::format("{} could not be locked in time, though nobody holds it: {}",
                                              in_quotes(name.text()), found.text));
    }
    if (!observer) {
      observer.emplace(context_, name, patience, owner);
      if (job || thread->holds.load() > 0) observer->add_row(thread, job, actor.view());
    }
    if (!row.free && observer->marks() && !planted("wait_free_no_second_look")) continue;  // and look again
    // Taken since, before an attempt that may have its row locked.
    if (row.free && tries_once() && !look().free) return in_vain();
    observer->rest(row.free ? Duration{} : std::max(row.opens_in, Duration{1}), {});
  }
}

// The transaction may be on another server of a cluster than the engine's connections, which is a little behind. False:
// there is no cluster. Throws conflict if that server stays behind: nothing that it does not find is believed then.
bool InTransaction::catch_up(store::CallerTransaction& caller) {
  const auto position =
      context_.retry(context_.soon(), [&](Deadline until) { return context_.table->position(until); });
  if (position.empty()) return false;
  if (!in_transaction([&] { return caller.catch_up(position, context_.options.timeouts.request); }))
    throw Error(Fault::conflict,
                "the transaction's server of the cluster is too far behind the others; roll the transaction "
                "back and run it again");
  return true;
}

// Runs the fence's statement. Throws lost if it is refused, and whatever went wrong: the transaction must not be
// committed then, and where the options say so, cannot.
void InTransaction::prove(store::CallerTransaction& caller, const std::shared_ptr<Lease>& held,
                          const FenceOptions& options, bool gone) {
  constexpr Duration least_wait = std::chrono::milliseconds{50};
  // What has ended stays ended, whatever its row says: it is refused as nobody's.
  auto key = held->pinned_key();
  const auto left = gone ? Duration{} : held->remaining(BootClock::now());
  const bool over = left == Duration{} && !planted("ended_lock_fences");
  if (over) key.owner = {};
  const auto wait = std::clamp(left, least_wait, std::max<Duration>(least_wait, context_.options.timeouts.request));
  // A grant may not have arrived yet on the transaction's server of a cluster. To look for it in vain would have its
  // row locked, and what then arrives ends the transaction.
  const bool young = !over && BootClock::now() - held->hand_over_state.since < longest_way;
  bool proved = false;
  try {
    if (young) catch_up(caller);
    proved = caller.fence(key, wait) || (!over && !young && catch_up(caller) && caller.fence(key, wait));
    if (proved && context_.options.bound_idle && !planted("with_fence_unbounded"))
      caller.bound_idle(std::min(key.lease, held->terms().asked()));
  } catch (const Failure& failure) {
    if (options.doom) caller.spoil();
    throw told_in_transaction(failure);
  } catch (...) {
    if (options.doom) caller.spoil();
    throw;
  }
  if (proved) return;
  if (options.doom && !planted("refused_not_doomed")) caller.doom();
  if (!over && held->lose(Loss::refused))
    context_.events->emit_loss(held, "a fence was refused: the lease is no longer ours");
  throw Error(Fault::lost, fmt::format("the lock {} (token {}) is {}: its fence was refused; roll the transaction back",
                                       in_quotes(held->name()), number(held->token()),
                                       gone || !held->loss() ? "no longer held" : "lost"));
}

void InTransaction::fence(std::span<const std::shared_ptr<Lease>> all, const TransactionRef& transaction,
                          const FenceOptions& options, bool gone) {
  const auto caller = in_transaction([&] { return context_.table->caller_transaction(transaction); });
  const PausedRenewals paused(context_.renewer, all, context_.options.timeouts.request);
  in_transaction([&] { caller->check(); });
  auto* const begun = Begun::find(transaction);
  try {
    // Where the transaction ends here, an attempt that failed needs nothing more.
    auto here = options;
    here.doom = options.doom && begun == nullptr;
    for (const auto& held : all) prove(*caller, held, here, gone);
  } catch (const Error& error) {
    if (begun != nullptr && options.doom) {
      if (error.fault() == Fault::lost) caller->doom();
      begun->spoil(std::current_exception());
    }
    throw;
  } catch (...) {
    if (begun != nullptr && options.doom) begun->spoil(std::current_exception());
    throw;
  }
}

void InTransaction::with_fence(std::vector<std::shared_ptr<Lease>> all, const TransactionRef& transaction,
                               const std::function<void()>& work, const FenceOptions& options) {
  const auto& first = *all.front();
  const auto caller = in_transaction([&] { return context_.table->caller_transaction(transaction); });
  FenceOptions ended_here = options;
  ended_here.doom = false;
  Backoff backoff(std::chrono::milliseconds{200});
  for (unsigned attempt = 1;; ++attempt) {
    bool working = false;
    try {
      std::optional<PausedRenewals> paused(std::in_place, context_.renewer, all, context_.options.timeouts.request);
      in_transaction([&] { caller->begin(context_.options.timeouts.request); });
      try {
        std::vector<std::pair<Instant, Duration>> renewed;  // when each was asked for, and for how long
        for (const auto& held : all) {
          renewed.emplace_back(BootClock::now(), held->key().lease);
          prove(*caller, held, ended_here, false);
        }
        paused.reset();
        {
          Begun begun(transaction);
          working = true;
          work();
          if (!planted("sleeping_savepoint")) begun.throw_if_spoiled();
          working = false;
        }
        commit(*caller);
        // Committed, and with it the renewals in the fences.
        for (std::size_t i = 0; i < all.size(); ++i) {
          const auto& [asked, lease] = renewed[i];
          const auto sent = planted("with_fence_trusts_commit") ? BootClock::now() : asked;
          all[i]->confirmed(sent, lease);
        }
        return;
      } catch (...) {
        // Before it is rolled back, what is open tells whether it is still what was begun.
        const bool undone = !working || caller->undo();
        if (!caller->roll_back() && options.doom) caller->doom();
        if (undone) throw;
        try {
          throw;
        } catch (const Error& error) {
          if (error.fault() != Fault::conflict) throw;
        }
        throw Error(
            Fault::misuse,
            fmt::format("the work under the lock {} asked to be run again, but its transaction had ended before: what "
                        "it has committed is stored, and nothing is run again",
                        in_quotes(first.name())));
      }
    } catch (const Error& error) {
      if (error.fault() != Fault::conflict || attempt >= options.attempts) throw;
      context_.events->counters().retried.of(RetryCause::conflict).add();
      context_.events->emit(Event::Kind::retried, first, {}, error.what());
      pause_until(later(BootClock::now(), backoff.next()), {});
    }
  }
}

}  // namespace dlock::engine
