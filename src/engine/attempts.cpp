// Tries to be granted a name without standing in line: whether it reads first, for how long it looks at a row that is
// locked, which answer comes too late to be believed; and what is told of a name that nobody holds and nobody can have.
#include "engine/attempts.hpp"

#include "types/mutant.hpp"
#include "types/name.hpp"
#include "types/pause.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace dlock::engine {
namespace {

// A row that is locked by another transaction is looked at again for this long before the answer is "busy":
// it may have been a release on its way.
constexpr Duration locked_patience = std::chrono::milliseconds{50};
constexpr Duration locked_pause = std::chrono::milliseconds{5};
constexpr Duration longest_locked_pause = std::chrono::milliseconds{100};
// Where each attempt finds the row locked and each look finds that it is not: others take turns at it.
constexpr int looks_at_locked_gate = 3;
constexpr int most_turns_of_others = 3;

}  // namespace

store::AcquireRequest Attempts::acquire_request(GrantRequest& request, Instant sent) const {
  if (!request.unanswered && !request.in_doubt) request.begun = sent;
  const bool freed = std::exchange(request.freed, request.freed && planted("cheap_ask_for_good"));
  return {request.name,
          request.owner,
          context_.options.node,
          request.options.label ? std::string_view{*request.options.label} : context_.options.label,
          request.actor.view(),
          request.terms.left_of_lease(request.begun, sent),
          request.options.at_least,
          request.options.metadata,
          request.ticket,
          request.mode,
          request.options.permits,
          request.options.limit,
          request.mode == Mode::node && context_.options.node_exclusive,
          freed && !request.unanswered && !request.in_doubt && !request.handed};
}

std::shared_ptr<Lease> Attempts::try_once(GrantRequest& request, Instant deadline, std::stop_token stop) {
  const Deadline bound(context_.answer_by(deadline, request.called), std::move(stop));
  if (auto held = lingering_.take(request, bound.no_later_than(context_.soon()))) return held;
  for (bool again = false;; again = true) {
    Instant sent{};
    const auto answer = context_.retry(bound, request.unanswered, [&](Deadline until) {
      sent = BootClock::now();
      return context_.table->acquire(acquire_request(request, sent), until);
    });
    if (auto end = take_up(request, answer, sent, again, bound)) return *end;
  }
}

std::optional<std::shared_ptr<Lease>> Attempts::take_up(GrantRequest& request, const store::Granted& answer,
                                                        Instant sent, bool again, const Deadline& bound) {
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
  const bool stale = now - request.first_sent > context_.options.reaper.grace / 2 && !planted("no_look_after_grace") &&
                     !above_floor(*answer.token, bound);
  // Nor is a grant of use whose max_hold has passed since it was first asked for.
  const bool over =
      (request.unanswered || again) && request.terms.left_of_lease(request.begun, now) <= request.terms.margin;
  if (stale || over) {
    start_over(request, bound);
    return std::nullopt;
  }
  auto held = std::make_shared<Lease>(request.name, request.owner, *answer.token, request.terms,
                                      planted("acquire_trusts_answer") ? now : sent, request.begun);
  // An answer that took longer than its own lease is worth another one: the same owner keeps the same token.
  if (!held->valid(now) && request.terms.asked() > 4 * (request.terms.margin - request.terms.delay) &&
      now < bound.at() && !bound.stopped())
    return std::nullopt;
  held->unanswered = static_cast<bool>(request.unanswered);
  held->unnamed = request.handed;
  held->in_mode(request.mode);
  held->hand_over_state.since = now;
  held->say(request.options);
  try {
    context_.hold(held, request.job, request.called);
  } catch (...) {  // out of memory: it is given back as what is in doubt
    held->let_go();
    held->belongs_to_nobody();
    context_.renewer.remove(held);
    context_.timer.forget(held);
    throw;
  }
  request.in_doubt = false;
  return held;
}

// Gives back what it has been granted, and asks as somebody else from now on.
void Attempts::start_over(GrantRequest& request, const Deadline& deadline) {
  context_.retry(deadline, [&](Deadline until) {
    context_.table->withdraw(request.name.text(), request.owner, until, request.mode);
    return true;
  });
  if (request.unanswered)
    context_.renewer.free_later({request.name.text(), request.owner.text(), {}, true, {}, request.mode});
  request.in_doubt = false;
  request.unanswered = {};
  request.owner = {};
  request.first_sent = BootClock::now();
}

store::Availability Attempts::look(GrantRequest& request, const Deadline& until) const {
  return context_.table->look_for(acquire_request(request, request.begun), until);
}

store::Blocked Attempts::blocked(GrantRequest& request, const Deadline& deadline) {
  return context_.retry(deadline.no_later_than(context_.soon()), [&](Deadline until) {
    return context_.table->blocked_for(acquire_request(request, request.begun), until);
  });
}

bool Attempts::above_floor(Token token, const Deadline& deadline) {
  return number(token) > number(context_.retry(deadline, [&](Deadline until) { return context_.table->floor(until); }));
}

std::shared_ptr<Lease> Attempts::try_first(GrantRequest& request, const Patience& patience) {
  const bool only_tries = !patience.waits;
  const auto& name = request.name.text();
  if (auto held =
          lingering_.take(request, {std::min(context_.answer_by(patience.deadline), context_.soon()), patience.stop}))
    return held;
  bool lingered = false;  // somewhere else, and was waited for
  if (only_tries && !context_.renewer.has_leftovers(name) && busy_.lately(name, request.first_sent)) try {
      const Deadline until(std::min(context_.answer_by(patience.deadline), context_.soon()), patience.stop);
      const bool exclusive = request.mode == Mode::exclusive;
      auto busy = store::Busy::no;
      if (exclusive) busy = context_.table->busy(name, until);
      else if (!look(request, until).free) busy = store::Busy::yes;
      if (busy == store::Busy::lingers) context_.lingers_somewhere = true;
      lingered = busy == store::Busy::lingers || (busy == store::Busy::yes && !exclusive);
      if (busy != store::Busy::no && !(lingered && lingering_.await(request.name, patience))) {
        request.row_locked = false;
        busy_.note(request.name.text(), BootClock::now());
        return nullptr;
      }
    } catch (const Failure&) {  // the attempt tells what is wrong, if it still is
    }
  const auto give_up_on_lock =
      std::min(patience.deadline, later(request.first_sent, context_.within(locked_patience, 2)));
  PollingPauses pauses(locked_pause, longest_locked_pause);
  int found_locked = 0;  // by so many looks in a row
  for (;;) {
    if (auto held = try_once(request, patience.deadline, patience.stop)) return held;
    if (late_attempts_.free_late_grant(request.name, {context_.answer_by(patience.deadline), patience.stop})) continue;
    if (only_tries && !request.row_locked && !std::exchange(lingered, true) && lingering_.await(request.name, patience))
      continue;
    const auto now = BootClock::now();
    if (only_tries && !request.row_locked) busy_.note(request.name.text(), now);
    // Where an attempt of its own got no answer, it may be that one that has locked the row.
    const auto give_up = request.unanswered ? patience.deadline : give_up_on_lock;
    if (!request.row_locked || now >= patience.deadline || (patience.waits && now >= give_up)) return nullptr;
    // Who only tries is told that it is busy as soon as that is known; what is in the way without holding it may go.
    if (now >= give_up) {
      const auto found = blocked(request, {Instant::max(), patience.stop});
      found_locked = found.rightly && found.locked ? found_locked + 1 : 0;
      // The gate of a name that several hold is written whenever one of them is renewed: that keeps nobody out.
      const bool passing = found.locked && request.mode != Mode::exclusive && found_locked < looks_at_locked_gate &&
                           !planted("gate_looked_at_once");
      if (found.rightly && !passing) {
        request.found_locked = found.locked;
        request.row_locked = false;
        return nullptr;
      }
    }
    if (pause_until(later(now, pauses.next()), patience.stop)) return nullptr;
  }
}

std::shared_ptr<Lease> Attempts::look_into_lock(GrantRequest& request, const Patience& patience) {
  std::optional<Token> before;
  PollingPauses pauses(2 * locked_pause, longest_locked_pause);
  // Who has found the database silent does not wait for it much longer.
  const auto deadline = request.silent ? context_.answer_by(BootClock::now()) : Instant::max();
  for (int turn = 0; turn <= most_turns_of_others; ++turn) {
    const auto found = blocked(request, {deadline, patience.stop});
    // As in try_first: who shares the name may write its gate just now.
    const bool passing = found.locked && request.mode != Mode::exclusive && turn < most_turns_of_others &&
                         !planted("gate_looked_at_once");
    request.found_locked = found.locked && !passing;
    if (found.rightly && !passing) return nullptr;
    if (passing) {
      if (pause_until(later(BootClock::now(), pauses.next()), patience.stop)) return nullptr;
      if (auto held = try_once(request, patience.deadline, patience.stop)) return held;
      if (!request.row_locked) return nullptr;
      continue;
    }
    if (!found.text.empty())
      throw Error(
          Fault::timeout,
          fmt::format("{} could not be locked in time, though {}: {}", in_quotes(request.name.text()),
                      request.mode == Mode::exclusive ? "nobody holds it" : "no holder is in the way", found.text));
    // Who was granted it since the last look, or has it now, is a witness, too.
    const auto availability = context_.retry({std::min(deadline, context_.soon()), patience.stop},
                                             [&](Deadline until) { return look(request, until); });
    const bool granted_since = before && availability.token != *before && request.mode == Mode::exclusive;
    if (!availability.free || granted_since) return nullptr;
    before = availability.token;
    if (turn == most_turns_of_others) break;
    if (auto held = try_once(request, patience.deadline, patience.stop)) return held;
    if (!request.row_locked) return nullptr;
  }
  throw Error(Fault::timeout, fmt::format("{} could not be locked in time, though nobody is seen to hold it: another "
                                          "transaction keeps its place in the table locked",
                                          in_quotes(request.name.text())));
}

}  // namespace dlock::engine
