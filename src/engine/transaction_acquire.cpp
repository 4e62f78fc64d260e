// What a call that locks a name in a caller's transaction does between two rests: when it attempts, when it is in vain,
// and how often it speaks on the caller's connection, so that the server does not end the transaction for its silence.
#include "engine/transaction_acquire.hpp"

#include "engine/transaction_calls.hpp"
#include "types/mutant.hpp"
#include "types/owner.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace dlock::engine {
namespace {

constexpr Duration time_to_look = std::chrono::seconds{2};
// So often who waits says that it is there, where no bound of its silence is known: there may be one on the way.
constexpr Duration longest_silence = std::chrono::seconds{10};
constexpr Duration shortest_silence = std::chrono::milliseconds{20};
// For so long what a session has told of itself is believed.
constexpr Duration check_valid_for = std::chrono::milliseconds{20};

Job job_behind(const LockOptions* lease) { return lease != nullptr && lease->job ? lease->job : Job::current(); }

}  // namespace

TransactionAcquire::TransactionAcquire(Context& context, Attempts& attempts, const Name& name, const Deadline& until,
                                       const LockOptions* lease)
    : context_(context),
      attempts_(attempts),
      name_(name),
      patience_{until.at(), until.stop(), true},
      lease_(lease),
      owner_(random_identity()),
      job_(job_behind(lease)),
      thread_(job_ ? JobRef{} : job_of_this_thread()),
      actor_(context.engine_id, job_ ? id_of(job_.name()) : thread_->id),
      ask_{name.text(), Token{}} {
  if (context.options.bound_idle && !planted("lock_in_unbounded")) ask_.idle_bound = context.options.lease;
  if (lease == nullptr) return;
  if (lease->mode != Mode::exclusive)
    throw Error(Fault::misuse,
                fmt::format("a transaction locks a name exclusively, not in mode {}", to_string(lease->mode)));
  const auto terms = context_.policy.terms_of(*lease);
  if (ask_.idle_bound) ask_.idle_bound = terms.asked();
  ask_.owner = owner_;
  ask_.node = context_.options.node;
  ask_.label = lease->label ? std::string_view{*lease->label} : context_.options.label;
  ask_.actor = actor_.view();
  ask_.lease = terms.lease;
  if (!planted("lock_in_without_at_least")) ask_.at_least = lease->at_least;
  ask_.metadata = lease->metadata;
}

LockInTransaction TransactionAcquire::run(Lingering& lingering, const TransactionRef& transaction) {
  // Before the transaction may be the only one who writes. Where it is already, that is not possible, and not waited
  // for.
  lingering.end(name_.text(), {context_.shortly(BootClock::now()), patience_.stop});
  lingering.await(name_, patience_);
  caller_ = in_transaction([&] { return context_.table->caller_transaction(transaction); });
  check();
  for (bool attempted = false;;) {
    if (observer_) observer_->attend();
    // Never locked in order to look: a row that was examined in vain can stay locked until the transaction ends.
    const auto row = look();
    if (row.free) {
      if (auto grant = take(row)) return grant;
      if (!attempted && BootClock::now() < patience_.deadline) {
        attempted = true;
        continue;  // look at once whether it was taken, or is only locked
      }
      if (caller_->writes_alone() && !planted("waits_for_itself"))
        return in_vain();  // it is this transaction that has it
    } else if ((attempted && (tries_once() || planted("race_lost_once"))) || caller_->writes_alone()) {
      // Taken between the look and the attempt, which may have left its row locked here; or nobody can release it while
      // this transaction writes. Waiting on would make its holder lose it.
      return in_vain();
    }
    if (patience_.stop.stop_requested()) return in_vain();
    attempted = false;
    if (BootClock::now() >= patience_.deadline) {
      // Free by the engine's server; the caller's may not have heard of the release.
      if (!row.free || caught_up_ || !catch_up(context_, *caller_)) return out_of_time(row);
      caught_up_ = true;
      continue;
    }
    if (!observer_) observe();
    if (!row.free && observer_->marks() && !planted("wait_free_no_second_look")) continue;  // and look again
    // Taken since, before an attempt that may have its row locked.
    if (row.free && tries_once() && !look().free) return in_vain();
    rest(row.free ? Duration{} : std::max(row.opens_in, Duration{1}));
  }
}

store::RowAvailability TransactionAcquire::look() {
  looked_at_ = BootClock::now();
  return ask([&](Deadline answer) { return context_.table->row_availability(name_.text(), answer); });
}

std::optional<Grant> TransactionAcquire::take(const store::RowAvailability& row) {
  if (!row.there) {
    ask([&](Deadline answer) { context_.table->make(name_.text(), answer); });
    catch_up(context_, *caller_);
  }
  ask_.floor = row.floor;
  check_again();
  const auto token = in_transaction([&] { return caller_->take(ask_); });
  if (!token) {
    if (!in_transaction([&] { return caller_->sees(name_.text()); }))
      throw Error(Fault::conflict,
                  fmt::format("the row of {} was made after the transaction's snapshot; roll the transaction back and "
                              "run it again, with the lock first",
                              in_quotes(name_.text())));
    return std::nullopt;
  }
  check_again();
  if (observer_) observer_->leave_mark();
  // As in an acquire: the floor may have been raised since, if this took very long.
  if (BootClock::now() - looked_at_ > context_.options.reaper.grace / 2 &&
      !attempts_.above_floor(*token, answered_by().at()))
    throw Error(Fault::conflict, fmt::format("locking {} took longer than half of EngineOptions::reaper.grace; roll "
                                             "the transaction back and run it again",
                                             in_quotes(name_.text())));
  return Grant{*token, lease_ != nullptr ? owner_ : std::string{}};
}

void TransactionAcquire::check() {
  checked_at_ = BootClock::now();
  in_transaction([&] { caller_->check(false); });
}

// The clock of its session may have stood still meanwhile, and a lease that was taken by it is over too early.
void TransactionAcquire::check_again() {
  if (!caller_->counts_by_own_clock() || planted("waits_by_stopped_clock")) return;
  if (BootClock::now() - checked_at_ > check_valid_for) check();
}

bool TransactionAcquire::tries_once() {
  return in_transaction([&] { return caller_->tries_once(); });
}

LockInTransaction TransactionAcquire::in_vain() {
  confirm();
  return {};
}

// It may have been some time ago that something was asked on the caller's connection.
void TransactionAcquire::confirm() {
  in_transaction([&] {
    caller_->confirm();
    if (observer_) caller_->keep_alive();
  });
}

LockInTransaction TransactionAcquire::out_of_time(const store::RowAvailability& row) {
  confirm();
  if (!row.free || !caller_->table_locked()) return {std::nullopt, row.free};
  const auto found = context_.blocked(name_, Instant::max());
  if (found.rightly || found.text.empty()) return {std::nullopt, found.locked};
  throw Error(Fault::timeout, fmt::format("{} could not be locked in time, though nobody holds it: {}",
                                          in_quotes(name_.text()), found.text));
}

void TransactionAcquire::observe() {
  observer_.emplace(context_, name_, patience_, owner_);
  if (job_ || thread_->holds.load() > 0) observer_->add_row(thread_, job_, actor_.view());
}

void TransactionAcquire::keep_alive() {
  if (planted("silent_wait")) speaks_at_ = Instant::max();
  const auto now = BootClock::now();
  if (now < speaks_at_) return;
  const auto bound = in_transaction([&] { return caller_->keep_alive(); });
  speaks_at_ = later(now, std::clamp(bound / 3, shortest_silence, longest_silence));
}

void TransactionAcquire::rest(Duration opens_in) {
  keep_alive();
  const auto silent = std::max(Duration{1}, std::chrono::ceil<Duration>(speaks_at_ - BootClock::now()));
  observer_->rest(opens_in == Duration{} ? silent : std::min(opens_in, silent), {});
}

Deadline TransactionAcquire::answered_by() const {
  // The transaction that is under way is worth more than a moment: a look may have to open a connection.
  return {std::max(context_.answer_by(patience_.deadline), later(looked_at_, time_to_look)), patience_.stop};
}

}  // namespace dlock::engine
