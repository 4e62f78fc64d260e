// Hands what is released to the next in line of this process, without its being free in between: by a statement, or for
// a short time after one, which has reserved tokens for that, in memory. When it does not, since it has gone round here
// for so long that others are to have their turn.
#include "engine/wait/handing_over.hpp"

#include "store/waiter_table.hpp"
#include "types/mutant.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace dlock::engine {
namespace {

// Nobody's job id in an actor: what stands in a row whose holders change without its being told.
constexpr std::string_view no_job = "0000000000000000";

// Whether a grant that comes without a statement leaves nothing wrong in the database: what stands there of the wait,
// or has to stand in the row.
bool may_follow_in_memory(const WaitQueues::WaiterPtr& waiter) {
  const auto& wanted = WaitQueues::wanted(waiter);
  const bool has_row = WaitQueues::ticket(waiter) != 0 || wanted.by_statement;
  return (!has_row || planted("passed_on_to_queued")) && may_go_on_in_memory(wanted.options, wanted.terms);
}

// The head of a line that a releaser has to tell how it ended: at the latest here that nobody knows, so that it asks.
class Reserved {
 public:
  Reserved(WaitQueues& queues, WaitQueues::WaiterPtr waiter) noexcept : queues_(queues), waiter_(std::move(waiter)) {}
  ~Reserved() { static_cast<void>(settle(nullptr, true)); }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  // As WaitQueues::settle, for the first time; true after that.
  bool settle(std::shared_ptr<Lease> grant, bool doubt = false) {
    const auto waiter = std::exchange(waiter_, nullptr);
    return !waiter || queues_.settle(waiter, std::move(grant), doubt);
  }

 private:
  WaitQueues& queues_;
  WaitQueues::WaiterPtr waiter_;
};

}  // namespace

// How many tokens the row is to keep for those in this process who may follow. 0: it goes on by statements alone.
std::uint32_t HandOver::reserved_for(const Lease& held, const WaitQueues::WaiterPtr& waiter, Instant deadline) {
  if (context_.options.hand_overs.local <= Duration{}) return 0;
  if (!may_follow_in_memory(waiter)) return 0;
  if (held.hand_over_state.times == 0 && !WaitQueues::followed(waiter)) return 0;
  return history_.keeps(deadline) && !planted("passed_on_unrecorded") ? 0 : most_reserved;
}

// Gives what was let go of to the head of the line without a statement: the same row and owner, the next of the tokens
// that it keeps for this process, and the trust that its last confirmation has left. Only shortly after the database
// was asked, so that others get their turn as if it always were. Empty: a statement has to.
std::shared_ptr<Lease> HandOver::pass_on(const std::shared_ptr<Lease>& held, const WaitQueues::WaiterPtr& waiter) {
  if (held->hand_over_state.reserved <= 1 && !planted("passed_on_past_range"))
    return nullptr;  // with none left it would name a job
  // Somebody may know the grant by its row, where nothing would tell it from the next.
  if (held->pinned() || (held->unanswered && !planted("passed_on_unanswered"))) return nullptr;
  const auto& wanted = WaitQueues::wanted(waiter);
  const auto terms = held->terms();
  if (!may_follow_in_memory(waiter)) return nullptr;
  if (terms != wanted.terms && !planted("passed_on_other_terms")) return nullptr;
  const auto now = BootClock::now();
  const auto asked = held->last_sent();
  const bool late = now - asked >= context_.options.hand_overs.local;
  if (late && !planted("passed_on_for_ever") && !planted("passed_on_past_turn")) return nullptr;
  if (held->trusted_until() - now < (terms.lease - terms.margin) / 2 && !planted("passed_on_worn_out")) return nullptr;
  auto next = std::make_shared<Lease>(wanted.name, held->owner(), Token{number(held->token()) + 1}, wanted.terms,
                                      planted("passed_on_trusts_now") ? now : asked);
  next->hand_over_state = {held->hand_over_state.times, held->hand_over_state.reserved - 1,
                           held->hand_over_state.since};
  if (!held->pass_on()) return nullptr;  // it was named to somebody just now
  return next;
}

bool HandOver::hand_over(ReleaseRequest& request) {
  const auto& held = request.held;
  const auto& state = held->hand_over_state;
  // It came from thread to thread without a statement, and may go on so. What lingered has come from nobody.
  const bool goes_round = state.times > 0 && state.reserved > 1 && state.reserved < most_reserved &&
                          BootClock::now() - held->last_sent() < context_.options.hand_overs.local;
  if (held->mode() != Mode::exclusive || !(goes_round || context_.queues->anybody(held->name()))) return false;
  const bool over = BootClock::now() - state.since >= context_.options.hand_overs.time;
  request.yields = state.times >= context_.options.hand_overs.in_a_row || (over && !planted("hand_over_outlasts_time"));
  if (planted("hand_over_for_ever") || planted("passed_on_past_turn")) request.yields = false;
  if (request.yields) return false;
  const auto waiter = context_.queues->reserve(held->name(), goes_round);
  if (!waiter) return false;
  Reserved reservation(*context_.queues, waiter);
  const auto& wanted = WaitQueues::wanted(waiter);
  // A release that got no answer may have freed the row, or may yet.
  auto next = request.unanswered && !planted("passed_on_in_doubt") ? nullptr : pass_on(held, waiter);
  if (!next) {
    const auto reserved = reserved_for(*held, waiter, request.deadline);
    const auto owner = wanted.owner;
    const SessionId nobody(context_.engine_id, no_job);
    store::AcquireRequest ask{wanted.name,
                              owner,
                              context_.options.node,
                              wanted.options.label ? std::string_view{*wanted.options.label} : context_.options.label,
                              reserved > 0 ? nobody.view() : std::string_view{wanted.actor},
                              wanted.terms.lease,
                              wanted.options.at_least,
                              wanted.options.metadata,
                              WaitQueues::ticket(waiter)};
    if (planted("handed_without_at_least")) ask.at_least = {};
    if (planted("handed_without_metadata")) ask.metadata = {};
    bool handed = false;
    const auto begun = BootClock::now();
    Instant sent{};
    try {
      handed = context_.retry(request.deadline, request.unanswered, [&](Deadline until) {
        sent = BootClock::now();
        ask.lease = wanted.terms.left_of_lease(begun, sent);
        return context_.table->waiting().hand_over(held->key(), ask, std::int64_t{1} + reserved, until);
      });
    } catch (...) {
      if (!reservation.settle(nullptr, true)) late_attempts_.disown(*held, owner);
      throw;
    }
    if (!handed) {
      const bool doubted{request.unanswered};
      if (!reservation.settle(nullptr, doubted) && doubted) late_attempts_.disown(*held, owner);
      return false;
    }
    if (planted("hand_over_trusts_answer")) sent = BootClock::now();
    next = std::make_shared<Lease>(wanted.name, owner, Token{number(held->row_token()) + 1}, wanted.terms, sent, begun);
    next->hand_over_state = {state.times + 1, reserved, state.since};
    // A repeat may still take effect, when the row is somebody else's of this process.
    if (request.unanswered && !planted("handed_in_doubt_unpinned")) next->pin();
    next->say(wanted.options);
  }
  context_.events->emit(Event::Kind::released, *held);
  try {
    context_.hold(next, wanted.job, wanted.since);
  } catch (...) {
    context_.forget(next);
    throw;
  }
  // Who has given up in the meantime has said no: then it is the next one's, or free.
  if (!reservation.settle(next)) request.unclaimed = std::move(next);
  return true;
}

}  // namespace dlock::engine
