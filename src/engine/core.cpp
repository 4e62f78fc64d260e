// This file knows the order of things in one call: ask, look again, wait, hand out, give back.
#include "engine/core.hpp"

#include "engine/backoff.hpp"
#include "engine/faults.hpp"
#include "engine/glob.hpp"
#include "engine/lease/trust.hpp"
#include "engine/on_behalf.hpp"
#include "engine/pause.hpp"
#include "engine/request.hpp"
#include "engine/retry.hpp"
#include "store/waiter_table.hpp"
#include "types/mutant.hpp"
#include "types/owner.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <system_error>

namespace dlock {
inline namespace v0 {
namespace {

using engine::between;
using engine::Lease;

// When a release has ended, however it did, those who wait in this process look for themselves.
class WakeOnExit {
 public:
  WakeOnExit(engine::WaitQueues& queues, const std::string& name, const bool& yields)
      : queues_(queues), name_(name), yields_(yields) {}
  ~WakeOnExit() {
    if (wakes_ && !planted("silent_local_release")) queues_.wake_head(name_, yields_);
  }
  WakeOnExit(const WakeOnExit&) = delete;
  WakeOnExit& operator=(const WakeOnExit&) = delete;
  // There is nothing to hear of.
  void keep_silent() { wakes_ = false; }

 private:
  engine::WaitQueues& queues_;
  const std::string& name_;
  const bool& yields_;
  bool wakes_ = true;
};

// What the server was last seen to be weak in. Threads: any.
class Weaknesses {
 public:
  // What is new in it is told.
  void tell(engine::EventQueue& events, const std::vector<std::string>& found) {
    const std::lock_guard guard(mutex_);
    for (const auto& weakness : found)
      if (std::find(told_.begin(), told_.end(), weakness) == told_.end())
        events.emit(Event::Kind::weak_durability, {}, {}, {}, weakness);
    told_ = found;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> told_;  // guarded by mutex_
};

}  // namespace

Core::Core(std::shared_ptr<store::LockTable> table, EngineOptions options, std::string half)
    : options_(std::move(options)),
      engine_id_(std::move(half)),
      table_(std::move(table)),
      events_(std::make_shared<engine::EventQueue>(options_.observer, options_.request_timeout,
                                                   engine::Origin{options_.label, options_.node})),
      timer_(events_),
      renewer_(table_, events_, options_.request_timeout),
      reaper_(table_, events_,
              {options_.reap_every, options_.retention, options_.grace, options_.request_timeout, options_.label}),
      notifier_(table_, events_, queues_, {options_.listen, options_.ticket, options_.request_timeout}) {
  queues_->on_wait([events = events_](const auto& held) { events->ask(held); });
  const auto weaknesses = std::make_shared<Weaknesses>();
  table_->on_reconnect([events = events_, weaknesses](const auto& look) {
    events->emit(Event::Kind::reconnected, {});
    if (!events->observed()) return;
    if (const auto found = look()) weaknesses->tell(*events, *found);
  });
  weaknesses->tell(*events_, table_->weaknesses(later(BootClock::now(), options_.connect_timeout)));
}

Core::~Core() {
  // One time for all that ends, and not one for each after the other.
  const auto until = std::min(soon(), end_by_);
  renewer_.close(until);
  reaper_.close(until);
  notifier_.close(until);
  events_->close(until);
}

// A lease is worth nothing without the threads that renew it and watch its trust: they are there before it is asked
// for.
void Core::ensure_running() {
  if (running_.load(std::memory_order_acquire)) return;
  try {
    timer_.start();
    renewer_.start();
  } catch (const std::system_error& error) {
    if (planted("no_thread_is_no_error")) throw;
    if (planted("keepers_tried_once")) running_ = true;
    throw Error(Fault::unavailable,
                fmt::format("no thread could be started to keep a lease: {}", error.code().message()));
  }
  running_.store(true, std::memory_order_release);
}

Instant Core::soon() const noexcept { return later(BootClock::now(), options_.request_timeout); }

Lease::Terms Core::terms_of(const LockOptions& options) const {
  auto lease = options.lease.value_or(options_.lease);
  if (options.max_hold > Duration{}) lease = std::min(lease, options.max_hold);
  const auto every = options.renew_every.value_or(Duration{});
  const auto terms = with_margin({lease, {}, every, options.max_hold, options.renew});
  check_pace(terms);
  return terms;
}

Lease::Terms Core::with_margin(Lease::Terms terms) const {
  terms.margin = engine::margin_of(terms.lease, table_->smallest_margin(), options_.margin);
  if (planted("no_margin")) terms.margin = Duration{};
  if (terms.margin >= terms.lease)
    throw Error(Fault::misuse,
                fmt::format("a lease of {} us would never be valid: it must be longer than its margin of {} us{}",
                            terms.lease.count(), terms.margin.count(),
                            options_.margin ? " (EngineOptions::margin)" : ", the least on this database"));
  return terms;
}

void Core::check_pace(const Lease::Terms& terms) const {
  if (terms.renew && terms.renew_every > Duration{} && terms.renew_every >= terms.lease - terms.margin)
    throw Error(Fault::misuse,
                fmt::format("LockOptions::renew_every {} us must be shorter than the lease of {} us without "
                            "its margin of {} us",
                            terms.renew_every.count(), terms.lease.count(), terms.margin.count()));
}

Core::Acquired Core::acquire(const Name& name, const LockOptions& given, const Patience& patience) {
  const engine::OnBehalf behalf(given);
  const auto& options = behalf.options();
  const auto reentrance = options.reentrance.value_or(options_.reentrance);
  if (patience.stop.stop_requested()) return {};
  if (reentrance == Reentrance::thread)
    if (auto held = reenter(name, options, patience.deadline)) return held;
  ensure_running();
  Request request(*this, name, options, reentrance);
  if (reentrance == Reentrance::node) {
    request.entry = random_identity();
    request.mark = owners_.mark(request.owner.text());
  }
  auto held = granted_or_told(request, patience);
  if (held && reentrance == Reentrance::thread && !request.entered) open_to_job(held);
  return {std::move(held), request.found_locked};
}

// Sends what it takes to be granted the lock, or to enter it where our node holds it. Without an owner: it is the
// request's own.
store::Entered Core::ask(Request& request, bool again, Deadline until, Instant& sent) {
  sent = BootClock::now();
  if (!request.unanswered && !request.in_doubt) request.begun = sent;
  const store::AcquireRequest ask{request.name,
                                  request.owner,
                                  options_.node,
                                  request.options.label ? std::string_view{*request.options.label} : options_.label,
                                  request.actor.view(),
                                  request.terms.left_of_lease(request.begun, sent),
                                  request.options.at_least,
                                  request.options.metadata,
                                  request.entry,
                                  request.ticket};
  const auto granted = table_->acquire({&ask, 1}, until).front();
  // A grant that is asked for again keeps its entries as they are by then, ours with the end it was first given.
  const bool settled = granted.token ? !again && !request.unanswered : granted.row_locked;
  if (settled || request.entry.empty()) return {granted.token, {}, granted.row_locked};
  sent = BootClock::now();
  auto entered = table_->enter(
      ask, [&](std::string_view owner) { return options_.node_exclusive && !owners_.ours(owner); }, until);
  if (planted("entry_trusts_answer")) sent = BootClock::now();
  return entered;
}

// Asks once, until there is an answer. Empty: busy.
std::shared_ptr<Lease> Core::try_once(Request& request, Instant deadline, std::stop_token stop) {
  const auto bound = answer_by(deadline, request.called);
  for (bool again = false;; again = true) {
    Instant sent{};
    const auto answer =
        retry(bound, stop, request.unanswered, [&](Deadline until) { return ask(request, again, until, sent); });
    request.row_locked = answer.row_locked;
    if (!answer.token) {
      request.begun = sent;  // none of them had been granted until then
      request.refused(answer.row_locked);
      return nullptr;
    }
    request.in_doubt = true;  // until it is in somebody's hands, whatever is thrown on the way
    request.refused_at = {};
    const auto now = BootClock::now();
    // Tokens never fall: an answer this late may stem from a floor that the reaper has raised since.
    const auto owner = answer.owner.empty() ? std::string_view{request.owner} : std::string_view{answer.owner};
    const bool stale = owner == request.owner && now - request.first_sent > options_.grace / 2 &&
                       !planted("no_look_after_grace") && !above_floor(*answer.token, {bound, stop});
    // Nor is a grant of use whose max_hold has passed since it was first asked for.
    const bool over =
        (request.unanswered || again) && request.terms.left_of_lease(request.begun, now) <= request.terms.margin;
    if (stale || over) {
      start_over(request, stale, {bound, stop});
      continue;
    }
    auto held = std::make_shared<Lease>(request.name, owner, *answer.token, request.terms,
                                        planted("acquire_trusts_answer") ? now : sent, request.entry, request.begun);
    if (request.mark) held->keep(owners_.mark(std::string(owner)));
    // An answer that took longer than its own lease is worth another one: the same owner keeps the same token.
    if (!held->valid(now) && request.terms.lease > 4 * request.terms.margin && now < bound && !stop.stop_requested())
      continue;
    request.in_doubt = false;
    held->unanswered = request.unanswered;
    held->passed.since = now;
    held->say(request.options);
    hold(held, request.job, request.called);
    return held;
  }
}

// Gives back what it has been granted, and asks as somebody else from now on. `whole`: also what others of its node
// have entered.
void Core::start_over(Request& request, bool whole, const Deadline& deadline) {
  retry(deadline, [&](Deadline until) {
    if (whole || request.entry.empty()) table_->withdraw(request.name.text(), request.owner, until);
    else table_->leave(request.name.text(), request.entry, until);
    return true;
  });
  if (request.unanswered) renewer_.free_later({request.name.text(), request.owner.text(), request.entry, {}, true, {}});
  request.in_doubt = request.unanswered = false;
  request.owner = {};
  if (request.mark) request.mark = owners_.mark(request.owner.text());
  request.first_sent = BootClock::now();
}

bool Core::above_floor(Token token, const Deadline& deadline) {
  return number(token) > number(retry(deadline, [&](Deadline until) { return table_->floor(until); }));
}

Released Core::release(const std::shared_ptr<Lease>& held, Duration timeout) {
  if (planted("release_takes_its_time")) timeout = options_.request_timeout;
  const bool was_valid = held->valid(BootClock::now());
  switch (entries_.leave(held)) {
    case engine::ReentranceTable::Rest::nothing: break;
    case engine::ReentranceTable::Rest::others: return was_valid ? Released::still_held : Released::was_lost;
    case engine::ReentranceTable::Rest::detached: return Released::unconfirmed;
  }
  const bool was_lost = !held->let_go();
  tell_if_lost(held);
  forget(held);
  expect_late_attempts(*held);
  const auto deadline_of_all = later(BootClock::now(), timeout);
  bool in_doubt = false, yields = false;
  WakeOnExit wake(*queues_, held->name(), yields);
  try {
    if (!was_lost && hand_over(held, deadline_of_all, in_doubt, yields)) {
      wake.keep_silent();  // the name was not free for a moment: whoever were woken would look in vain
      return Released::freed;
    }
    const auto left = retry(deadline_of_all, {}, in_doubt, [&](Deadline deadline) {
      if (!held->entry().empty()) return table_->leave(held->name(), held->entry(), deadline);
      const auto key = held->key();
      return store::Left{static_cast<bool>(table_->release({&key, 1}, deadline).front()), {}};
    });
    // Nothing to free although it was ours when asked first: then an attempt without an answer has freed it.
    if (was_lost) return Released::was_lost;
    if (!left.was_there && !(in_doubt && was_valid)) {
      events_->counters().lost.of(Loss::refused).add();
      events_->emit(Event::Kind::lost, *held, {}, "it was no longer ours when it was released");
      return Released::was_lost;
    }
    if (left.owner == held->owner()) return Released::still_held;
    events_->emit(Event::Kind::released, *held);
    return Released::freed;
  } catch (const Error& error) {
    renewer_.free_later({held->name(), held->owner(), std::string(held->entry()), {}, false, held->longest()});
    if (was_lost) return Released::was_lost;
    events_->emit(Event::Kind::released, *held, {},
                  fmt::format("not confirmed; at the latest it ends with its lease: {}", error.what()));
    return Released::unconfirmed;
  }
}

void Core::detach(const std::shared_ptr<Lease>& held) {
  // Of a job others may be inside, on threads that work until they are told.
  const bool others = entries_.detach(held) > 1 && !held->said().job.empty();
  if (others && held->lose(Loss::refused)) events_->emit_loss(held, "another thread of its job has detached it");
  // Its row goes on naming the job that has let go of it.
  if (const auto named = held->belongs_to_nobody()) named->add({weak_from_this(), held, true});
  const bool names_its_job = !held->said().job.empty() && held->entry().empty() && held->valid(BootClock::now());
  tell_if_lost(held);
  forget(held);
  if (held->entry().empty()) expect_late_attempts(*held);
  if (names_its_job && !planted("detached_stays_the_jobs")) name_nobody(*held);
}

// Whoever lets go of it may be the first to look at it after its end.
void Core::tell_if_lost(const std::shared_ptr<Lease>& held) noexcept {
  if (held->valid(BootClock::now())) return;
  if (const auto loss = held->loss(); loss && held->lose(*loss)) events_->emit_loss(held, engine::in_words(*loss));
}

void Core::forget(const std::shared_ptr<Lease>& held) noexcept {
  held->let_go();
  if (held->first_to_count_end()) events_->counters().ended.add();
  held->belongs_to_nobody();
  queues_->tell_no_more(held);
  renewer_.forget(held);
  timer_.forget(held);
}

void Core::extend(const std::shared_ptr<Lease>& held, Duration lease, Instant by, bool at_least) {
  const auto now = BootClock::now();
  if (later(now, lease) > held->ends())
    throw Error(Fault::misuse,
                fmt::format("the lease {} us is longer than the {} us that LockOptions::max_hold leaves the lock {}",
                            lease.count(), std::chrono::floor<Duration>(std::max(held->ends(), now) - now).count(),
                            in_quotes(held->name())));
  auto terms = held->terms();
  terms.lease = lease;
  terms = with_margin(terms);
  // The pace says nothing where max_hold ends the lease before the next renewal.
  if (later(later(now, terms.renew_every), lease) <= held->ends()) check_pace(terms);
  terms = held->ask_for(terms, at_least);
  watch(held);
  Instant sent{};
  const auto renewed = retry(by, [&](Deadline deadline) {
    sent = BootClock::now();
    const auto room = std::chrono::floor<Duration>(held->ends() - sent);  // an attempt that is repeated has less
    return table_->extend(held->key(), std::clamp<Duration>(room, Duration{}, terms.lease), deadline);
  });
  if (renewed == store::Renewed::lost ||
      !held->extended(planted("extend_trusts_answer") ? BootClock::now() : sent, terms, at_least)) {
    if (held->lose(Loss::refused)) events_->emit_loss(held, "it could not be extended: the lease is no longer ours");
    throw Error(Fault::lost, fmt::format("the lock {} (token {}) is lost: it could not be extended",
                                         in_quotes(held->name()), number(held->token())));
  }
  held->wanted_is(renewed == store::Renewed::wanted);
  if (renewed == store::Renewed::wanted) events_->ask(held);
  watch(held);
}

// Has the grant renewed, and its end told, by what its terms are now.
void Core::watch(const std::shared_ptr<Lease>& held) {
  timer_.watch(held);
  renewer_.watch(held);
}

std::optional<Holder> Core::inspect(const Name& name) {
  return retry(soon(), [&](Deadline deadline) { return table_->inspect(name.text(), deadline); });
}

std::vector<Holder> Core::list(const std::string& glob) {
  auto holders = retry(soon(), [&](Deadline deadline) { return table_->list(engine::literal_prefix(glob), deadline); });
  std::erase_if(holders, [&](const Holder& holder) { return !engine::matches(glob, holder.name); });
  return holders;
}

std::vector<Waiter> Core::waiters(const std::string& glob) {
  auto waiters = retry(
      soon(), [&](Deadline deadline) { return table_->waiting().waiters(engine::literal_prefix(glob), deadline); });
  std::erase_if(waiters, [&](const Waiter& waiter) { return !engine::matches(glob, waiter.name); });
  return waiters;
}

bool Core::force_release(const Name& name, Token seen, std::string_view reason) {
  bool in_doubt = false;
  const bool moved = retry(soon(), {}, in_doubt, [&](Deadline deadline) {
    return table_->force_release(name.text(), seen, reason, deadline);
  });
  if (moved || !in_doubt) return moved;
  const auto row = inspect(name);  // an attempt without an answer may have done it
  return row && row->last_run && row->last_run->outcome == Outcome::forced && number(row->token) == number(seen) + 1;
}

Engine::Reaped Core::reap(std::size_t batch) {
  try {
    return reaper_.round(batch);
  } catch (const Failure& failure) { throw engine::to_error(failure, failure.may_have_run()); }
}

Engine::Reaped Core::reap_all(const Reaping& reaping, const std::stop_token& stop) {
  try {
    return reaper_.pass(reaping, stop);
  } catch (const Failure& failure) { throw engine::to_error(failure, failure.may_have_run()); }
}

}  // namespace v0
}  // namespace dlock
