// Proves in a caller's transaction that a lease is still held: how long that waits for the row, what a refusal does,
// that the lease is not renewed meanwhile, and when with_fence runs its work again. How a name is locked in one:
// transaction_acquire.cpp.
#include "engine/in_transaction.hpp"

#include "engine/on_behalf.hpp"
#include "engine/transaction_calls.hpp"
#include "engine/wait/job_rows.hpp"
#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace dlock::engine {
namespace {

// What was acknowledged so long ago has arrived on all servers of a cluster, but for one that is in trouble.
constexpr Duration longest_way = std::chrono::seconds{10};

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
  auto grant = TransactionAcquire(context_, attempts_, name, until, lease).run(lingering_, transaction);
  if (!grant && !until.stopped()) {
    const LockOptions none;
    const OnBehalf asked(lease != nullptr ? *lease : none);
    context_.tell_end(name, begun, until.at() > begun, Context::said_by(asked.options()));
  }
  return grant;
}

// As everybody else sees it: a transaction that reads as of before the grant finds nothing of it.
bool InTransaction::is_there(const store::LeaseKey& key) {
  if (planted("unseen_is_lost")) return false;
  try {
    const auto until = context_.in_a_moment();
    if (key.mode != Mode::exclusive) return context_.table->lease_of_holder(key, until).has_value();
    const auto row = context_.table->inspect(key.name, until);
    return row && row->owner == key.owner && row->token == key.token;
  } catch (const Failure&) { return false; }
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
  std::optional<Duration> idle_bound;
  if (context_.options.bound_idle && !planted("with_fence_unbounded"))
    idle_bound = std::min(key.lease, held->terms().asked());
  bool proved = false;
  try {
    if (young) catch_up(context_, caller);
    const auto fence = [&] { return caller.fence(key, wait, idle_bound); };
    proved = fence() || (!over && !young && catch_up(context_, caller) && fence());
  } catch (const Failure& failure) {
    if (options.doom) caller.spoil();
    throw told_in_transaction(failure);
  } catch (...) {
    if (options.doom) caller.spoil();
    throw;
  }
  if (proved) return;
  if (!over && is_there(key)) {
    if (options.doom) caller.spoil();
    throw Error(
        Fault::conflict,
        fmt::format("the lock {} (token {}) was granted after the transaction's snapshot; roll the transaction back "
                    "and run it again, with the fence first",
                    in_quotes(held->name()), number(held->token())));
  }
  if (options.doom && !planted("refused_not_doomed")) caller.doom();
  if (!over) context_.lose_refused(held, "a fence was refused");
  throw Error(Fault::lost, fmt::format("the lock {} (token {}) is {}: its fence was refused; roll the transaction back",
                                       in_quotes(held->name()), number(held->token()),
                                       gone || !held->loss() ? "no longer held" : "lost"));
}

// A row that names another thread than the one that has the lock now cannot be put right while a transaction of this
// very thread has it locked, and a deadlock would not be found. Not in front of a fence in a transaction that is open
// already: its snapshot may be older than what is written here.
void InTransaction::put_rows_right_before() {
  if (planted("fenced_as_another")) return;
  try {
    context_.retry(context_.soon(), [](Deadline until) {
      put_rows_right(job_of_this_thread(), until);
      return true;
    });
  } catch (const std::exception&) {  // who waits in this transaction is not seen
  }
}

void InTransaction::fence(std::span<const std::shared_ptr<Lease>> all, const TransactionRef& transaction,
                          const FenceOptions& options, bool gone) {
  const auto caller = in_transaction([&] { return context_.table->caller_transaction(transaction); });
  const PausedRenewals paused(context_.renewer, all, context_.options.timeouts.request);
  auto* const begun = Begun::find(transaction);
  try {
    // Where the transaction ends here, an attempt that failed needs nothing more.
    auto here = options;
    here.doom = options.doom && begun == nullptr;
    in_transaction([&] { caller->check(here.doom); });
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

void InTransaction::hear(const TransactionRef& transaction, const FenceOptions& options,
                         const std::function<void()>& call) {
  try {
    call();
  } catch (...) {
    auto* const begun = Begun::find(transaction);
    if (begun != nullptr && options.doom && !planted("inner_begin_unheard")) begun->spoil(std::current_exception());
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
  put_rows_right_before();
  for (unsigned attempt = 1;; ++attempt) {
    bool working = false;
    try {
      std::optional<PausedRenewals> paused(std::in_place, context_.renewer, all, context_.options.timeouts.request);
      const auto asked = BootClock::now();  // a session's clock may stand still from then on
      hear(transaction, options, [&] { in_transaction([&] { caller->begin(context_.options.timeouts.request); }); });
      try {
        std::vector<Duration> renewed;
        for (const auto& held : all) {
          renewed.push_back(held->key().lease);
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
        const auto sent = planted("with_fence_trusts_commit") ? BootClock::now() : asked;
        for (std::size_t i = 0; i < all.size(); ++i) all[i]->confirmed(sent, renewed[i]);
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
            fmt::format("the work under the lock {} asked to be run again, but its transaction had ended before, or it "
                        "has written a table without transactions: that is stored, and nothing is run again",
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
