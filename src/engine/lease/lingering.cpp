// Which leases stay in their rows when they are released, and who in this process is granted one without a statement;
// how long a try waits for another process to let go of one. How long and how many linger: lingering_leases.cpp.
#include "engine/lease/lingering.hpp"

#include "store/waiter_table.hpp"
#include "types/mutant.hpp"
#include "types/owner.hpp"
#include "types/pause.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

namespace dlock::engine {
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

std::optional<Released> Lingering::linger(ReleaseRequest& request) {
  const auto& held = request.held;
  if (!context_.lingering || held->mode() != Mode::exclusive || request.unanswered || held->unanswered)
    return std::nullopt;
  const auto said = held->said();
  const auto terms = held->terms();
  if (said.label || !said.job.empty() || terms.max_hold > Duration{}) return std::nullopt;
  if (terms.lease >= until_released) return std::nullopt;  // a crash would leave it held by nobody for that long
  auto next = next_in_memory(request, terms);
  const bool written = !next;
  if (written) next = next_by_statement(request, terms);
  if (!next) return std::nullopt;
  context_.events->emit(Event::Kind::released, *held);
  bool kept = false;
  try {
    kept = context_.lingering->keep(next, written);
  } catch (const std::exception&) {  // out of memory
  }
  return kept || let_go(*next, request.deadline) ? Released::freed : Released::unconfirmed;
}

std::shared_ptr<Lease> Lingering::next_in_memory(const ReleaseRequest& request, const LeaseTerms& terms) {
  auto& held = *request.held;
  if (held.hand_over_state.reserved <= 1 && !planted("lingers_past_range")) return nullptr;
  if ((held.pinned() && !planted("lingers_pinned")) || !context_.lingering->goes_on(held)) return nullptr;
  if (history_.keeps(request.deadline)) return nullptr;
  auto next = std::make_shared<Lease>(Name(held.name()), held.owner(), Token{number(held.token()) + 1}, terms,
                                      planted("lingers_trusted_anew") ? BootClock::now() : held.last_sent());
  next->hand_over_state = {0, held.hand_over_state.reserved - 1, {}};
  return held.pass_on() || planted("lingers_pinned") ? next : nullptr;  // else it was named to somebody just now
}

std::shared_ptr<Lease> Lingering::next_by_statement(ReleaseRequest& request, const LeaseTerms& terms) {
  const auto& held = *request.held;
  if (history_.keeps(request.deadline) || !context_.lingering->welcome(held.name())) return nullptr;
  const Name name(held.name());
  const auto owner = random_identity();
  const SessionId nobody(context_.engine_id, lingering_job);
  const store::AcquireRequest ask{
      name, owner, context_.options.node, context_.options.label, nobody.view(), terms.lease, {}, {}};
  bool kept = false;
  const auto begun = BootClock::now();
  Instant sent{};
  try {
    kept = context_.retry(request.deadline, request.unanswered, [&](Deadline until) {
      sent = BootClock::now();
      return context_.table->waiting().hand_over(held.key(), ask, std::int64_t{1} + most_reserved, until);
    });
  } catch (...) {
    late_attempts_.disown(held, owner);
    throw;
  }
  if (request.unanswered) late_attempts_.disown(held, owner);  // a repeat may still take effect
  if (!kept || request.unanswered) return nullptr;
  auto next = std::make_shared<Lease>(name, owner, Token{number(held.row_token()) + 1}, terms, sent, begun);
  next->hand_over_state = {0, most_reserved, {}};
  return next;
}

std::shared_ptr<Lease> Lingering::take(GrantRequest& request, const Deadline& deadline) {
  if (!context_.lingering) return nullptr;
  const bool plain = request.mode == Mode::exclusive && request.ticket == 0 && !request.in_doubt && !request.unanswered;
  auto held =
      take(request.name, plain ? &request.options : nullptr, request.terms, request.job, request.called, deadline);
  if (held) request.refused_at = {};
  return held;
}

std::shared_ptr<Lease> Lingering::take(const Name& name, const LockOptions* options, const LeaseTerms& terms,
                                       const JobRef& job, Instant called, const Deadline& deadline) {
  auto [lease, fresh] = context_.lingering->take(name.text());
  if (!lease) return nullptr;
  const bool fits = options != nullptr && (may_go_on_in_memory(*options, terms) || planted("lingering_for_anyone")) &&
                    (lease->terms() == terms || planted("lingering_on_other_terms"));
  // Asked with a time of its own: who only tries has too little, and a history that nobody could ask for counts as one.
  if (!fresh || !fits || history_.keeps(context_.soon())) {
    let_go(*lease, deadline);
    return nullptr;
  }
  lease->hand_over_state.since = called;
  try {
    context_.hold(lease, job, called);
  } catch (...) {
    context_.forget(lease);
    let_go(*lease, deadline);
    throw;
  }
  return lease;
}

bool Lingering::let_go(const Lease& lingering, const Deadline& deadline) noexcept {
  context_.lingering->forget(lingering.name());
  try {
    context_.retry(deadline, [&](Deadline until) { return context_.table->release(lingering.key(), until); });
    context_.queues->wake_head(lingering.name());
    return true;
  } catch (const std::exception&) {
    try {
      context_.renewer.free_later({lingering.name(), lingering.owner(), {}, false, lingering.longest()});
    } catch (const std::exception&) {  // out of memory: it ends with its lease
    }
    return false;
  }
}

void Lingering::end(const std::string& name, const Deadline& deadline) noexcept {
  if (!context_.lingering) return;
  if (const auto taken = context_.lingering->take(name); taken.lease) let_go(*taken.lease, deadline);
}

void Lingering::end_all(Instant deadline) noexcept {
  if (!context_.lingering) return;
  try {
    for (const auto& lease : context_.lingering->take_all()) let_go(*lease, deadline);
  } catch (const std::exception&) {  // out of memory: they are freed in their time
  }
}

// Whether a refusal is worth a second look.
void Lingering::look(Duration time) {
  if (context_.lingering) context_.lingers_somewhere = true;
  const auto now = BootClock::now();
  looked_ = now.time_since_epoch().count();
  try {
    if (context_.table->lingering(context_.lingering != nullptr, later(now, time))) context_.lingers_somewhere = true;
  } catch (const Failure&) {  // it is asked again
    looked_ = 0;
  }
}

bool Lingering::await(const Name& name, const Patience& patience) {
  if (BootClock::now() - Instant{BootClock::duration{looked_.load()}} >= unaware_of_lingering)
    look(context_.within(patience_for_lingering, trips_for_lingering));
  if (!context_.lingers_somewhere.load()) return false;
  const auto ask = [&] {
    const Deadline deadline(std::min(context_.answer_by(patience.deadline), context_.soon()), patience.stop);
    return context_.retry(deadline, [&](Deadline until) { return context_.table->busy(name.text(), until); });
  };
  try {
    if (ask() != store::Busy::lingers) return false;
    const auto until = later(BootClock::now(), context_.within(patience_for_lingering, trips_for_lingering));
    context_.table->waiting().want(name.text(), context_.within(mark_of_a_try, trips_for_lingering),
                                   {context_.shortly(BootClock::now()), patience.stop});
    while (!pause_until(later(BootClock::now(), pause_for_lingering), patience.stop)) {
      const auto now = ask();
      if (now == store::Busy::no) return true;
      if (now == store::Busy::yes || BootClock::now() >= until) return false;
    }
  } catch (const Failure&) {  // then it is as busy as it was
  } catch (const Error&) {}
  return false;
}

}  // namespace dlock::engine
