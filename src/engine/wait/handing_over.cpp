// Hands what is released to the next in line of this process, without its being free in between.
#include "engine/core.hpp"
#include "engine/retry.hpp"
#include "store/waiter_table.hpp"
#include "types/mutant.hpp"

#include <memory>
#include <optional>
#include <string_view>

namespace dlock {
inline namespace v0 {

using engine::Lease;
using engine::WaitQueues;

// Gives what is held to the head of the line in this process, in one statement, so that it is never free in between.
// False: it is still to be freed. `in_doubt`: unless it was handed over without an answer. `yields`: others are to have
// their turn.
bool Core::hand_over(const std::shared_ptr<Lease>& held, Instant deadline, bool& in_doubt, bool& yields) {
  if (held->mode() != Mode::exclusive || !queues_->anybody(held->name())) return false;
  const auto& passed = held->passed;
  yields = passed.times >= options_.hand_overs.in_a_row || BootClock::now() - passed.since >= options_.hand_overs.time;
  if (planted("hand_over_for_ever")) yields = false;
  if (yields) return false;
  const auto waiter = queues_->reserve(held->name());
  if (!waiter) return false;
  const auto& wanted = WaitQueues::wanted(waiter);
  const auto owner = wanted.owner;
  store::AcquireRequest ask{wanted.name,
                            owner,
                            options_.node,
                            wanted.options.label ? std::string_view{*wanted.options.label} : options_.label,
                            wanted.actor,
                            wanted.terms.lease,
                            wanted.options.at_least,
                            wanted.options.metadata,
                            WaitQueues::ticket(waiter)};
  if (planted("handed_without_at_least")) ask.at_least = {};
  if (planted("handed_without_metadata")) ask.metadata = {};
  std::optional<Token> token;
  const auto begun = BootClock::now();
  Instant sent{};
  try {
    token = retry(deadline, {}, in_doubt, [&](Deadline until) {
      sent = BootClock::now();
      ask.lease = wanted.terms.left_of_lease(begun, sent);
      return table_->waiting().hand_over(held->key(), ask, until);
    });
  } catch (...) {
    if (!queues_->settle(waiter, nullptr, true)) disown(*held, owner);
    throw;
  }
  if (!token) {
    if (!queues_->settle(waiter, nullptr, in_doubt) && in_doubt) disown(*held, owner);
    return false;
  }
  if (planted("hand_over_trusts_answer")) sent = BootClock::now();
  auto next = std::make_shared<Lease>(wanted.name, owner, *token, wanted.terms, sent, begun);
  next->passed = {passed.times + 1, passed.since};
  next->say(wanted.options);
  events_->emit(Event::Kind::released, *held);
  hold(next, wanted.job, wanted.since);
  // Who has given up in the meantime has said no: then it is the next one's, or free.
  if (!queues_->settle(waiter, next)) release(next, options_.timeouts.release);
  return true;
}

}  // namespace v0
}  // namespace dlock
