// The order of things in one call: ask, look again, wait, hand out, give back.
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

constexpr Duration longest_glance = std::chrono::seconds{1};

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
      events_(std::make_shared<engine::EventQueue>(options_.observer, options_.timeouts.request,
                                                   engine::Origin{options_.label, options_.node})),
      timer_(events_),
      renewer_(table_, events_, options_.timeouts.request),
      reaper_(table_, events_,
              {options_.reaper.every, options_.reaper.retention, options_.reaper.grace, options_.timeouts.request,
               options_.label, options_.history}),
      notifier_(table_, events_, queues_, {options_.listen, options_.ticket, options_.timeouts.request}),
      lingering_(options_.linger > Duration{} ? std::make_unique<engine::LingeringLeases>(
                                                    table_, queues_, options_.linger, options_.timeouts.request)
                                              : nullptr) {
  queues_->on_wait([events = events_](const auto& held) { events->ask(held); });
  const auto weaknesses = std::make_shared<Weaknesses>();
  table_->on_reconnect([events = events_, weaknesses](const auto& look) {
    events->emit(Event::Kind::reconnected, {});
    if (!events->observed()) return;
    if (const auto found = look()) weaknesses->tell(*events, *found);
  });
  weaknesses->tell(*events_, table_->weaknesses(later(BootClock::now(), options_.timeouts.connect)));
  look_for_lingering(options_.timeouts.connect);
}

Core::~Core() {
  // One time for all that ends, and not one for each after the other.
  const auto until = std::min(soon(), end_by_);
  if (lingering_) lingering_->close(until);
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
    if (planted("renewer_tried_once")) running_ = true;
    throw Error(Fault::unavailable,
                fmt::format("no thread could be started to keep a lease: {}", error.code().message()));
  }
  running_.store(true, std::memory_order_release);
}

Instant Core::soon() const noexcept { return later(BootClock::now(), options_.timeouts.request); }

// Each acquisition of permits is one of its own.
Reentrance Core::reentrance_of(const LockOptions& options) const {
  return options.mode == Mode::permits ? Reentrance::none : options.reentrance.value_or(options_.reentrance);
}

Lease::Terms Core::terms_of(const LockOptions& options) const {
  if (options.mode != Mode::exclusive && reentrance_of(options) == Reentrance::node)
    throw Error(Fault::misuse, fmt::format("a lock in mode {} is not entered by others of its node: choose another "
                                           "LockOptions::reentrance than node",
                                           to_string(options.mode)));
  auto lease = options.lease.value_or(options_.lease);
  if (options.max_hold > Duration{}) lease = std::min(lease, options.max_hold);
  const auto every = options.renew_every.value_or(Duration{});
  const Duration delay = planted("no_delay") ? Duration{} : Duration{options.delay_after_loss};
  const auto max_hold = options.max_hold > Duration{} ? options.max_hold + delay : Duration{};
  const auto terms = with_margin({lease + delay, {}, every, max_hold, options.renew, delay});
  check_pace(terms);
  return terms;
}

Lease::Terms Core::with_margin(Lease::Terms terms) const {
  auto margin = engine::margin_of(terms.asked(), table_->smallest_margin(), options_.margin);
  if (planted("no_margin")) margin = Duration{};
  if (margin >= terms.asked())
    throw Error(Fault::misuse,
                fmt::format("a lease of {} us would never be valid: it must be longer than its margin of {} us{}",
                            terms.asked().count(), margin.count(),
                            options_.margin ? " (EngineOptions::margin)" : ", the least on this database"));
  if (terms.delay > Duration{} && terms.lease >= until_released)
    throw Error(Fault::misuse,
                fmt::format("a lease of {} us with LockOptions::delay_after_loss {} us must be over in less "
                            "than ten years",
                            terms.asked().count(), terms.delay.count()));
  terms.margin = margin + (planted("delay_is_trusted") ? Duration{} : terms.delay);
  return terms;
}

void Core::check_pace(const Lease::Terms& terms) const {
  if (terms.renew && terms.renew_every > Duration{} && terms.renew_every >= terms.lease - terms.margin)
    throw Error(Fault::misuse,
                fmt::format("LockOptions::renew_every {} us must be shorter than the lease of {} us without "
                            "its margin of {} us",
                            terms.renew_every.count(), terms.asked().count(), (terms.margin - terms.delay).count()));
}

Core::Acquired Core::acquire(const Name& name, const LockOptions& given, const Patience& patience) {
  const engine::OnBehalf behalf(given);
  const auto& options = behalf.options();
  const auto reentrance = reentrance_of(options);
  if (patience.stop.stop_requested()) return {};
  if (reentrance == Reentrance::thread)
    if (auto held = reenter(name, options, patience.deadline)) return {std::move(held), false, true};
  ensure_running();
  // What lingers here is granted before anything else is thought of; not to who would pass others in line.
  if (lingering_ && reentrance != Reentrance::node && options.mode == Mode::exclusive &&
      (!patience.waits || !queues_->anybody(name.text()))) {
    const bool threads = reentrance == Reentrance::thread;
    const auto job = threads && !options.job ? engine::job_of_this_thread() : engine::JobRef{};
    const Deadline until(std::min(answer_by(patience.deadline), soon()), patience.stop);
    if (auto held = take_lingering(name, &options, terms_of(options), job, BootClock::now(), until)) {
      if (threads) open_to_job(held);
      return {std::move(held)};
    }
  }
  Request request(*this, name, options, reentrance);
  auto held = wait_for_grant(request, patience);
  if (held && reentrance == Reentrance::thread && !request.entered) open_to_job(held);
  return {std::move(held), request.found_locked, request.entered};
}

void Core::detach(const std::shared_ptr<Lease>& held) {
  // Of a job others may be inside, on threads that work until they are told.
  const bool others = entries_.detach(held) > 1 && !held->said().job.empty();
  if (others && held->lose(Loss::refused)) events_->emit_loss(held, "another thread of its job has detached it");
  // Its row goes on naming the job that has let go of it.
  if (const auto named = held->belongs_to_nobody()) named->add({weak_from_this(), held, true});
  const bool names_its_job = !held->said().job.empty() && held->valid(BootClock::now());
  tell_if_lost(held);
  forget(held);
  expect_late_attempts(*held);
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

// Has the grant renewed, and its end told, by what its terms are now.
void Core::watch(const std::shared_ptr<Lease>& held) {
  timer_.watch(held);
  renewer_.watch(held);
}

std::optional<Holder> Core::inspect(const Name& name) {
  return retry(soon(), [&](Deadline deadline) { return table_->inspect(name.text(), deadline); });
}

// For a call whose answer is known, and worth more than this.
std::optional<Holder> Core::glance(const Name& name) {
  try {
    return table_->inspect(name.text(), std::min(soon(), later(BootClock::now(), longest_glance)));
  } catch (const Failure&) { return std::nullopt; }
}

std::vector<Holder> Core::list(const std::string& glob) {
  auto holders = retry(soon(), [&](Deadline deadline) { return table_->list(engine::literal_prefix(glob), deadline); });
  std::erase_if(holders, [&](const Holder& holder) { return !engine::matches(glob, holder.name); });
  return holders;
}

std::vector<HistoryEntry> Core::history(const Name& name, std::size_t limit) {
  return retry(soon(), [&](Deadline deadline) { return table_->history(name.text(), limit, deadline); });
}

std::vector<Waiter> Core::waiters(const std::string& glob) {
  auto waiters = retry(
      soon(), [&](Deadline deadline) { return table_->waiting().waiters(engine::literal_prefix(glob), deadline); });
  std::erase_if(waiters, [&](const Waiter& waiter) { return !engine::matches(glob, waiter.name); });
  return waiters;
}

std::vector<Sharer> Core::sharers(const std::string& glob) {
  auto sharers = retry(
      soon(), [&](Deadline deadline) { return table_->waiting().sharers(engine::literal_prefix(glob), deadline); });
  std::erase_if(sharers, [&](const Sharer& sharer) { return !engine::matches(glob, sharer.name); });
  return sharers;
}

bool Core::force_release(const Name& name, Token seen, std::string_view reason) {
  // What lingers here is granted to nobody any more, whatever comes of this.
  const auto lingering = lingering_ ? lingering_->take(name.text()).lease : nullptr;
  bool in_doubt = false, moved = false;
  try {
    moved = retry(soon(), {}, in_doubt,
                  [&](Deadline deadline) { return table_->force_release(name.text(), seen, reason, deadline); });
  } catch (...) {
    if (lingering) let_go(*lingering, shortly(BootClock::now()));
    throw;
  }
  if (lingering) let_go(*lingering, soon());
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
