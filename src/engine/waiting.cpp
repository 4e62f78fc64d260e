// How a call waits: in line, as the head looking and marking, until it is granted or out of patience.
#include "engine/backoff.hpp"
#include "engine/core.hpp"
#include "engine/pause.hpp"
#include "engine/persist.hpp"
#include "engine/request.hpp"
#include "engine/suspicion.hpp"
#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <algorithm>

namespace dlock {
inline namespace v0 {
namespace {

using engine::Held;
using engine::Lines;

// A head that has waited for longer is shown to people: it has a row in the waiters' table.
constexpr Duration shown_after = std::chrono::seconds{1};
// For so long the head of a line lets others go first when its line has had enough in one go.
constexpr Duration turn_of_others = std::chrono::milliseconds{20};
constexpr Duration longest_farewell = std::chrono::milliseconds{100};
// A statement that has to be prepared first takes two round trips, and not all of them take the least time.
constexpr int trips_of_a_statement = 4;

}  // namespace

// Threads: one. Leaves nothing behind, however it ends.
class Core::Vigil {
  template <class Ask>
  auto persist(Ask ask) {
    bool ignored = false;
    return core_.persist(core_.answer_by(patience_.deadline), patience_.stop, ignored, std::move(ask));
  }

 public:
  Vigil(Core& core, Request& request, const Patience& patience)
      : core_(core),
        request_(request),
        patience_(patience),
        wish_(std::make_shared<engine::Wish>(request.name, request.options, request.terms, request.owner.text(),
                                             std::string(request.actor.view()), request.job)),
        polling_(core.within(core.options_.poll_first, 1), core.options_.poll_floor) {}

  ~Vigil() {
    if (seat_) {
      // Only after a failure: what was handed over meanwhile has nobody any more.
      try {
        if (const auto late = core_.lines_->leave(seat_)) core_.release(late, core_.options_.release_timeout);
      } catch (const std::exception&) {  // out of memory: it ends with its lease
      }
    }
    if (has_row_) core_.usher_.discard_later(request_.name.text(), row_owner_);
  }
  Vigil(const Vigil&) = delete;
  Vigil& operator=(const Vigil&) = delete;

  // Empty: out of patience.
  std::shared_ptr<Held> wait() {
    const bool in_turn = request_.fairness == Fairness::fifo;
    if (in_turn) draw();
    sit();
    if (request_.ticket != 0) registered();
    for (;;) {
      until_ = patience_.deadline;
      core_.usher_.ensure_running();
      const auto standing = core_.lines_->attend(seat_);
      if (standing.dead) row_ = Row::wanted;
      if (row_ == Row::none && (in_turn || request_.may_hold_something())) row_ = Row::wanted;
      if (row_ == Row::wanted) {
        if (in_turn || request_.ticket != 0) draw();
        else enroll();
      }
      // Nothing can be written just now: later, before anything else.
      if (row_ == Row::wanted) until_ = later(BootClock::now(), polling_.next());
      if (standing.head && !(in_turn && request_.ticket == 0))
        if (auto held = lead(standing)) return held;
      switch (core_.lines_->rest(seat_, std::min(until_, suspicion_.next()), patience_.deadline, patience_.stop)) {
        case Lines::Woken::handed:
          if (auto held = accept(core_.lines_->leave(seat_))) return held;
          sit();
          break;
        case Lines::Woken::stopped: return give_up();
        case Lines::Woken::rung:
        case Lines::Woken::head:
        case Lines::Woken::time: break;
      }
      const auto now = BootClock::now();
      if (now >= patience_.deadline) return give_up();
      if (now >= suspicion_.next())
        persist([&](Deadline until) {
          put_rows_right(request_.job, until);
          return suspicion_.look(*core_.table_, request_.actor.view(), request_.owner, until);
        });
    }
  }

 private:
  store::Wait wait_as(store::Wait::Mode mode) const {
    const auto now = BootClock::now();
    store::Wait wait{request_.name.text(), request_.owner, core_.options_.node,
                     request_.options.label ? std::string_view{*request_.options.label} : core_.options_.label,
                     request_.actor.view(), mode, engine::row_for_people, std::nullopt};
    if (mode == store::Wait::Mode::fifo || depended_on()) wait.ttl = core_.options_.ticket;
    if (patience_.deadline != Instant::max())
      wait.wants = std::chrono::ceil<Duration>(std::max(patience_.deadline, now) - now);
    return wait;
  }

  // Whether others wait behind its ticket, or may be told of a deadlock with it in it.
  bool depended_on() const { return request_.ticket != 0 || request_.may_hold_something(); }

  void sit() {
    seat_ = core_.lines_->join(wish_, request_.ticket, request_.entry.empty());
    if (!request_.row_locked) core_.lines_->blocked(seat_, false);
    core_.usher_.attend();
  }

  // A row that may be there is there, for whoever has to take it away.
  void has_row() {
    has_row_ = true;
    row_owner_ = request_.owner.text();
  }

  void registered() {
    row_ = Row::there;
    core_.lines_->revived(seat_);
    core_.lines_->registered(seat_, depended_on() ? Lines::RowKind::depended_on : Lines::RowKind::for_people);
    core_.usher_.attend();
    if (request_.may_hold_something()) suspicion_.begin();
  }

  // Nothing is drawn while the lock's row is locked by a transaction.
  void draw() {
    has_row();
    const auto ticket = persist([&](Deadline until) -> std::int64_t {
      try {
        put_rows_right(request_.job, until);
        return core_.table_->waiting().draw(wait_as(store::Wait::Mode::fifo), until);
      } catch (const Failure& failure) {
        if (failure.cause() != Cause::locked) throw;
        return 0;
      }
    });
    if (ticket == 0) return;
    request_.ticket = ticket;
    if (!seat_) return;
    core_.lines_->give_ticket(seat_, ticket);
    registered();
  }

  // Once, and not for long: without a row it waits as well, only unseen.
  void enroll() {
    has_row();
    try {
      put_rows_right(request_.job, {core_.shortly(patience_.deadline), patience_.stop});
      core_.table_->waiting().enroll(wait_as(store::Wait::Mode::barging),
                                     {core_.shortly(patience_.deadline), patience_.stop});
    } catch (const Failure&) {
      return;
    }
    registered();
  }

  // Where not even that is possible now, nothing is known of the name.
  store::Outlook look() {
    const auto outlook = persist([&](Deadline until) {
      try {
        request_.row_locked = false;
        return core_.table_->look(request_.name.text(), request_.ticket, until);
      } catch (const Failure& failure) {
        if (failure.cause() != Cause::locked) throw;
        request_.row_locked = true;
        return store::Outlook{};
      }
    });
    if (request_.row_locked || !outlook.free) core_.lines_->blocked(seat_, request_.row_locked);
    return outlook;
  }

  // What only the head of a line does: look, and take what it sees free. Sets until_ to when it should look again.
  std::shared_ptr<Held> lead(const Lines::Standing& standing) {
    const auto now = BootClock::now();
    until_ = later(now, polling_.next());
    if (row_ == Row::none && now - begun_ > shown_after) row_ = Row::wanted;
    if (standing.quiet) return nullptr;  // granted in this process just now: its release will be heard of
    // Rung by name: a release, and most likely the row is free. A try in vain writes nothing.
    if (standing.rung && !standing.yields && request_.entry.empty())
      if (auto held = attempt()) return held;
    if (standing.ask || !request_.entry.empty()) {
      request_.unanswered = request_.unanswered || standing.ask;  // and stays so: what was handed over may come late
      if (auto held = attempt()) return held;
      if (!request_.entry.empty()) return nullptr;  // its node may be inside by then: only asking tells
    }
    auto outlook = look();
    if (request_.row_locked) return nullptr;
    // What is in the way may be an attempt of this request, or of one that is over here, that took effect late.
    if (outlook.owner == request_.owner) {
      if (auto held = attempt()) return held;
      outlook = look();
    } else if (core_.free_late_grant(request_.name, outlook, {core_.answer_by(patience_.deadline), patience_.stop})) {
      outlook = look();
    }
    if (outlook.queued && request_.ticket == 0) {  // who finds a queue joins it
      draw();
      if (request_.ticket == 0) return nullptr;
      outlook = look();
    }
    if (outlook.free && standing.yields && outlook.wanted_for > Duration{}) {
      const auto turn = core_.within(turn_of_others, 2);  // they have to hear of it first
      engine::pause_until(std::min(later(now, engine::jittered(turn)), patience_.deadline), patience_.stop);
      outlook = look();
    }
    for (bool tried = false, marked = false;;) {
      if (outlook.free && !tried) {
        tried = true;
        if (auto held = attempt()) return held;
        if (request_.row_locked) return nullptr;
        outlook = look();  // somebody was quicker
      } else if (core_.options_.listen && !outlook.free && !marked && !core_.granted_here(outlook) && outlook.wanted_for < mark_length / 4) {
        // The mark is on the row before the look that decides to sleep: a release after that look rings.
        marked = true;
        mark();
        if (!planted("no_second_look")) outlook = look();
      } else {
        break;
      }
    }
    if (core_.lines_->saw(seat_, outlook.holder)) core_.usher_.attend();
    if (outlook.opens_in > Duration{}) until_ = std::min(until_, later(BootClock::now(), outlook.opens_in));
    return nullptr;
  }

  void mark() {
    marked_ = true;
    core_.mark(request_.name, {core_.shortly(patience_.deadline), patience_.stop});
  }

  std::shared_ptr<Held> attempt() {
    auto held = core_.try_once(request_, patience_.deadline, patience_.stop);
    if (held) {
      core_.lines_->leave(seat_, true);
      seat_ = nullptr;
      return held;
    }
    core_.lines_->blocked(seat_, request_.row_locked);
    if (request_.owner != std::string_view{wish_->owner}) {
      core_.lines_->rename(seat_, request_.owner.text());
    }
    return held;
  }

  // A grant that comes too late to be of use is asked for once more: the same owner has the same token.
  std::shared_ptr<Held> accept(std::shared_ptr<Held> held) {
    seat_ = nullptr;
    if (held) held->unanswered = held->unanswered || request_.unanswered;
    if (!held || held->valid(BootClock::now())) return held;
    core_.forget(held);
    request_.in_doubt = true;
    if (held->ends() != Instant::max()) request_.begun = held->ends() - request_.terms.max_hold;
    return core_.try_once(request_, patience_.deadline, patience_.stop);
  }

  std::shared_ptr<Held> give_up() {
    request_.row_locked = core_.lines_->blocked(seat_);
    if (auto late = accept(core_.lines_->leave(seat_))) return late;
    // Who is told to stop waits for nothing more: the usher takes the row away, and a mark is over in seconds.
    if (patience_.stop.stop_requested()) return nullptr;
    // It must not take long, and where it would it is left to the usher.
    if (core_.within({}, trips_of_a_statement) > longest_farewell) {
      if (marked_ && !core_.lines_->anybody(request_.name.text())) core_.usher_.unwant_later(request_.name.text());
      return nullptr;
    }
    const auto deadline = later(BootClock::now(), std::min<Duration>(core_.options_.release_timeout, longest_farewell));
    try {
      if (has_row_) {
        core_.table_->waiting().discard(request_.name.text(), row_owner_, deadline);
        has_row_ = false;
        core_.lines_->ring(request_.name.text());  // the next in line may have seen the ticket still
      }
      if (marked_ && !core_.lines_->anybody(request_.name.text()))
        core_.table_->waiting().unwant(request_.name.text(), deadline);
    } catch (const Failure&) {  // the usher tries again with the row; a mark is over in seconds
    }
    return nullptr;
  }

  Core& core_;
  Request& request_;
  const Patience& patience_;
  const std::shared_ptr<engine::Wish> wish_;
  engine::Polling polling_;
  const Instant begun_ = BootClock::now();
  Lines::Seat seat_{};
  Instant until_{};
  bool has_row_ = false, marked_ = false;  // has_row_: or may have one
  enum class Row { none, wanted, there } row_ = Row::none;
  std::string row_owner_{};
  engine::Suspicion suspicion_{};
};

// Empty: busy, or out of patience.
std::shared_ptr<Held> Core::wait_for_grant(Request& request, const Patience& patience) {
  try {
    // Who is in line in this process comes first, but for those who do not wait.
    std::shared_ptr<Held> held;
    if (!patience.waits || !lines_->anybody(request.name.text())) held = try_first(request, patience);
    const bool waits = patience.waits && !patience.stop.stop_requested() && BootClock::now() < patience.deadline;
    if (!held && waits) held = Vigil(*this, request, patience).wait();
    if (!held && request.row_locked && !patience.stop.stop_requested()) held = look_into_lock(request, patience);
    if (held) return held;
  } catch (const Error&) {
    // Whatever an attempt without an answer may have been granted must not be held by nobody.
    if ((request.in_doubt || request.unanswered) && !planted("doubt_not_given_back")) free_later(request);
    if (patience.stop.stop_requested()) return nullptr;
    throw;
  }
  if (request.in_doubt || request.unanswered) free_later(request);
  return nullptr;
}

// Gives what is held to the head of the line in this process, in one statement, so that it is never free in between.
// False: it is still to be freed. `in_doubt`: unless it was handed over without an answer. `yields`: others are to have
// their turn.
bool Core::hand_over(const std::shared_ptr<Held>& held, Instant deadline, bool& in_doubt, bool& yields) {
  if (!held->entry().empty() || !lines_->anybody(held->name())) return false;
  const auto& passed = held->passed;
  yields = passed.times >= options_.hand_overs || BootClock::now() - passed.since >= options_.hand_over_time;
  if (planted("hand_over_for_ever")) yields = false;
  if (yields) return false;
  const auto seat = lines_->reserve(held->name());
  if (!seat) return false;
  const auto& wish = Lines::wish(seat);
  const auto owner = wish.owner;
  store::Ask ask{wish.name, owner, options_.node,
                 wish.options.label ? std::string_view{*wish.options.label} : options_.label,
                 wish.actor, wish.terms.lease, wish.options.at_least, wish.options.metadata, {},
                 Lines::ticket(seat)};
  if (planted("handed_without_at_least")) ask.at_least = {};
  if (planted("handed_without_metadata")) ask.metadata = {};
  std::optional<Token> token;
  const auto begun = BootClock::now();
  Instant sent{};
  try {
    token = persist(deadline, {}, in_doubt, [&](Deadline until) {
      sent = BootClock::now();
      ask.lease = wish.terms.left_of_lease(begun, sent);
      return table_->waiting().hand_over(held->claim(), ask, until);
    });
  } catch (...) {
    if (!lines_->settle(seat, nullptr, true)) disown(*held, owner);
    throw;
  }
  if (!token) {
    if (!lines_->settle(seat, nullptr, in_doubt) && in_doubt) disown(*held, owner);
    return false;
  }
  if (planted("hand_over_trusts_answer")) sent = BootClock::now();
  auto next = std::make_shared<Held>(wish.name, owner, *token, wish.terms, sent, std::string_view{}, begun);
  next->passed = {passed.times + 1, passed.since};
  reporter_->tell(Event::Kind::released, held->name(), held->token());
  hold(next, wish.job, sent);
  // Who has given up in the meantime has said no: then it is the next one's, or free.
  if (!lines_->settle(seat, next)) release(next, options_.release_timeout);
  return true;
}

}  // namespace v0
}  // namespace dlock
