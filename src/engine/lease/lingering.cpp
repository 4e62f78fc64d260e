// Keeps what is released in its row for a while, so that who comes next in this process is granted it without a statement;
// and asks a process that does so for a name to let go of it.
#include "engine/core.hpp"
#include "engine/lease/lingering_leases.hpp"
#include "engine/pause.hpp"
#include "engine/request.hpp"
#include "engine/retry.hpp"
#include "store/waiter_table.hpp"
#include "types/mutant.hpp"
#include "types/owner.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

namespace dlock {
inline namespace v0 {

using engine::Lease;

namespace {

// Stands for the job in a row that may linger: see busy in the dialects' lock.sql.
constexpr std::string_view lingering_job = "ffffffffffffffff";

// Who only tries waits so long for a name that perhaps nobody holds, and looks so often.
constexpr Duration patience_for_lingering = std::chrono::milliseconds{50};
constexpr Duration pause_for_lingering = std::chrono::milliseconds{5};
constexpr int trips_for_lingering = 6;
// An engine that was opened before anything lingered learns of it so late, when it is refused a name.
constexpr Duration unaware_of_lingering = std::chrono::minutes{1};
// Its mark need not last for longer.
constexpr Duration mark_of_a_try = std::chrono::milliseconds{200};

}  // namespace

bool Core::may_go_on_in_memory(const LockOptions& options, const Lease::Terms& terms) noexcept {
  return !options.job && !options.label && options.metadata.empty() && options.at_least <= Duration{} &&
         terms.max_hold == Duration{};
}

// What was let go of stays in its row under the next token, which nobody has yet. Empty: it is still to be freed.
std::optional<Released> Core::linger(const std::shared_ptr<Lease>& held, Instant deadline, bool& in_doubt) {
  if (!lingering_ || held->mode() != Mode::exclusive || in_doubt || held->unanswered) return std::nullopt;
  const auto said = held->said();
  const auto terms = held->terms();
  if (said.label || !said.job.empty() || terms.max_hold > Duration{}) return std::nullopt;
  if (terms.lease >= until_released) return std::nullopt;  // a crash would leave it held by nobody for that long
  auto next = next_in_memory(*held, terms, deadline);
  const bool written = !next;
  if (written) next = next_by_statement(*held, terms, deadline, in_doubt);
  if (!next) return std::nullopt;
  events_->emit(Event::Kind::released, *held);
  bool kept = false;
  try {
    kept = lingering_->keep(next, written);
  } catch (const std::exception&) {  // out of memory
  }
  return kept || let_go(*next, deadline) ? Released::freed : Released::unconfirmed;
}

std::shared_ptr<Lease> Core::next_in_memory(Lease& held, const Lease::Terms& terms, Instant deadline) {
  if (held.passed.reserved <= 1 && !planted("lingers_past_range")) return nullptr;
  if ((held.pinned() && !planted("lingers_pinned")) || !lingering_->goes_on(held)) return nullptr;
  if (keeps_history(deadline)) return nullptr;
  auto next = std::make_shared<Lease>(Name(held.name()), held.owner(), Token{number(held.token()) + 1}, terms,
                                      planted("lingers_trusted_anew") ? BootClock::now() : held.last_sent());
  next->passed = {0, held.passed.reserved - 1, {}};
  return held.pass_on() || planted("lingers_pinned") ? next : nullptr;  // else it was named to somebody just now
}

std::shared_ptr<Lease> Core::next_by_statement(const Lease& held, const Lease::Terms& terms, Instant deadline,
                                               bool& in_doubt) {
  if (keeps_history(deadline) || !lingering_->welcome(held.name())) return nullptr;
  const Name name(held.name());
  const auto owner = random_identity();
  const engine::SessionId nobody(engine_id_, lingering_job);
  const store::AcquireRequest ask{name, owner, options_.node, options_.label, nobody.view(), terms.lease, {}, {}};
  bool kept = false;
  const auto begun = BootClock::now();
  Instant sent{};
  try {
    kept = retry(deadline, {}, in_doubt, [&](Deadline until) {
      sent = BootClock::now();
      return table_->waiting().hand_over(held.key(), ask, std::int64_t{1} + engine::most_reserved, until);
    });
  } catch (...) {
    disown(held, owner);
    throw;
  }
  if (in_doubt) disown(held, owner);  // a repeat may still take effect
  if (!kept || in_doubt) return nullptr;
  auto next = std::make_shared<Lease>(name, owner, Token{number(held.row_token()) + 1}, terms, sent, begun);
  next->passed = {0, engine::most_reserved, {}};
  return next;
}

// Empty: nothing lingers here any more that this request could be granted.
std::shared_ptr<Lease> Core::take_lingering(Request& request, const Deadline& deadline) {
  if (!lingering_) return nullptr;
  const bool plain = request.mode == Mode::exclusive && request.ticket == 0 && !request.in_doubt && !request.unanswered;
  auto held = take_lingering(request.name, plain ? &request.options : nullptr, request.terms, request.job,
                             request.called, deadline);
  if (held) request.refused_at = {};
  return held;
}

// `options`: null where what lingers can only be freed.
std::shared_ptr<Lease> Core::take_lingering(const Name& name, const LockOptions* options, const Lease::Terms& terms,
                                            const engine::JobRef& job, Instant called, const Deadline& deadline) {
  auto [lease, fresh] = lingering_->take(name.text());
  if (!lease) return nullptr;
  const bool fits = options != nullptr && (may_go_on_in_memory(*options, terms) || planted("lingering_for_anyone")) &&
                    (lease->terms() == terms || planted("lingering_on_other_terms"));
  // Asked with a time of its own: who only tries has too little, and a history that nobody could ask for counts as one.
  if (!fresh || !fits || keeps_history(soon())) {
    let_go(*lease, deadline);
    return nullptr;
  }
  lease->passed.since = called;
  try {
    hold(lease, job, called);
  } catch (...) {
    forget(lease);
    let_go(*lease, deadline);
    throw;
  }
  return lease;
}

// Frees a row in which nobody holds anything; later, if that is not possible now: then it is false.
bool Core::let_go(const Lease& lingering, const Deadline& deadline) noexcept {
  lingering_->forget(lingering.name());
  try {
    retry(deadline, [&](Deadline until) { return table_->release(lingering.key(), until); });
    queues_->wake_head(lingering.name());
    return true;
  } catch (const std::exception&) {
    try {
      renewer_.free_later({lingering.name(), lingering.owner(), {}, false, lingering.longest()});
    } catch (const std::exception&) {  // out of memory: it ends with its lease
    }
    return false;
  }
}

// For what is asked of the table by its name, whoever holds it.
void Core::let_linger_no_more(const std::string& name, const Deadline& deadline) noexcept {
  if (!lingering_) return;
  if (const auto taken = lingering_->take(name); taken.lease) let_go(*taken.lease, deadline);
}

void Core::let_nothing_linger(Instant deadline) noexcept {
  if (!lingering_) return;
  try {
    for (const auto& lease : lingering_->take_all()) let_go(*lease, deadline);
  } catch (const std::exception&) {  // out of memory: they are freed in their time
  }
}

// Whether a refusal is worth a second look.
void Core::look_for_lingering(Duration time) {
  if (lingering_) lingers_somewhere_ = true;
  const auto now = BootClock::now();
  looked_for_lingering_ = now.time_since_epoch().count();
  try {
    if (table_->lingering(lingering_ != nullptr, later(now, time))) lingers_somewhere_ = true;
  } catch (const Failure&) {  // it is asked again
    looked_for_lingering_ = 0;
  }
}

// A name that was refused to one who does not wait may linger somewhere else. True: it is worth another attempt.
bool Core::await_lingering(const Name& name, const Patience& patience) {
  if (BootClock::now() - Instant{BootClock::duration{looked_for_lingering_.load()}} >= unaware_of_lingering)
    look_for_lingering(within(patience_for_lingering, trips_for_lingering));
  if (!lingers_somewhere_.load()) return false;
  const auto ask = [&] {
    bool in_doubt = false;
    return retry(std::min(answer_by(patience.deadline), soon()), patience.stop, in_doubt,
                 [&](Deadline until) { return table_->busy(name.text(), until); });
  };
  try {
    if (ask() != store::Busy::lingers) return false;
    const auto until = later(BootClock::now(), within(patience_for_lingering, trips_for_lingering));
    table_->waiting().want(name.text(), within(mark_of_a_try, trips_for_lingering),
                           {shortly(BootClock::now()), patience.stop});
    while (!engine::pause_until(later(BootClock::now(), pause_for_lingering), patience.stop)) {
      const auto now = ask();
      if (now == store::Busy::no) return true;
      if (now == store::Busy::yes || BootClock::now() >= until) return false;
    }
  } catch (const Failure&) {  // then it is as busy as it was
  } catch (const Error&) {}
  return false;
}

}  // namespace v0
}  // namespace dlock
