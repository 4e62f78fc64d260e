// Asks for other terms, for another mode, and for other metadata, until there is an answer: which changes are refused,
// how much `ensure` asks for, and when a conversion that nobody answers is a loss.
#include "engine/lease/lease_changes.hpp"

#include "types/mutant.hpp"
#include "types/name.hpp"
#include "types/owner.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

namespace dlock::engine {
namespace {

class PausedRenewal {
 public:
  PausedRenewal(LeaseRenewer& renewer, std::shared_ptr<Lease> held, Instant until)
      : renewer_(renewer), held_(std::move(held)) {
    renewer_.pause(held_, until);
  }
  ~PausedRenewal() { renewer_.resume(held_); }
  PausedRenewal(const PausedRenewal&) = delete;
  PausedRenewal& operator=(const PausedRenewal&) = delete;

 private:
  LeaseRenewer& renewer_;
  const std::shared_ptr<Lease> held_;
};

}  // namespace

void LeaseChanges::extend(const std::shared_ptr<Lease>& held, const Extension& extension, Instant by) {
  const auto now = BootClock::now();
  auto terms = held->terms();
  terms.lease = extension.lease + terms.delay;
  if (later(now, terms.lease) > held->ends())
    throw Error(
        Fault::misuse,
        fmt::format("the lease {} us is longer than the {} us that LockOptions::max_hold leaves the lock {}",
                    extension.lease.count(),
                    std::max(Duration{}, std::chrono::floor<Duration>(held->ends() - now) - terms.delay).count(),
                    in_quotes(held->name())));
  terms = context_.policy.with_margin(terms);
  // The pace says nothing where max_hold ends the lease before the next renewal.
  if (later(later(now, terms.renew_every), terms.lease) <= held->ends()) context_.policy.check_pace(terms);
  terms = held->ask_for(terms, extension.only_longer);
  context_.watch(held);
  Instant sent{};
  const auto renewal = context_.retry(by, [&](Deadline deadline) {
    sent = BootClock::now();
    const auto room = std::chrono::floor<Duration>(held->ends() - sent);  // an attempt that is repeated has less
    return context_.table->extend(held->pinned_key(), std::clamp<Duration>(room, Duration{}, terms.lease),
                                  extension.closed_for, deadline);
  });
  const bool refused = renewal == store::Renewed::lost;
  if (refused ||
      !held->extended(planted("extend_trusts_answer") ? BootClock::now() : sent, terms, extension.only_longer)) {
    if (refused) context_.lose_refused(held, "it could not be extended");
    else if (held->lose(Loss::unconfirmed)) context_.tell_loss(held, in_words(Loss::unconfirmed));
    throw Error(Fault::lost, fmt::format("the lock {} (token {}) is lost: it could not be extended",
                                         in_quotes(held->name()), number(held->token())));
  }
  held->wanted_is(renewal.wanted);
  if (renewal.wanted) context_.events->ask(held);
  context_.watch(held);
}

void LeaseChanges::ensure(const std::shared_ptr<Lease>& held, Duration left) {
  const auto now = BootClock::now();
  if (held->remaining(now) >= left && !planted("ensure_always_extends")) return;
  // A margin is a twentieth of the lease, unless it is chosen, or that would be too short or needlessly long.
  constexpr Duration longest_margin = std::chrono::milliseconds{500};
  const Duration margin = context_.options.margin.value_or(
      std::clamp<Duration>(left / 19 + Duration{1}, context_.table->smallest_margin(), longest_margin));
  // As long as it is, where max_hold leaves that; a millisecond for the way to the question.
  const auto room = held->room(now);
  extend(held, {std::max<Duration>(std::min<Duration>(held->terms().asked(), room), left + margin), {}, true},
         context_.soon());
}

// Repeated until there is an answer: whatever became of an attempt without one, the next writes the same. One that
// arrives late, after this has ended, can still write over what was written since, but only while the grant lasts.
void LeaseChanges::update_metadata(const std::shared_ptr<Lease>& held, std::string_view metadata, Keep keep) {
  const bool written = context_.retry(context_.soon(), [&](Deadline until) {
    return context_.table->update_metadata(held->pinned_key(), metadata, keep, until);
  });
  if (written) return;
  context_.lose_refused(held, "its metadata could not be written");
  throw Error(Fault::lost, fmt::format("the lock {} (token {}) is lost: its metadata could not be written",
                                       in_quotes(held->name()), number(held->token())));
}

std::shared_ptr<Lease> LeaseChanges::downgrade(const std::shared_ptr<Lease>& held) {
  check_convertible(*held, Mode::exclusive);
  return convert(held, Mode::shared);
}

// Two that wait for each other would do so for ever: only the one that is alone is made exclusive.
std::shared_ptr<Lease> LeaseChanges::upgrade(const std::shared_ptr<Lease>& held) {
  check_convertible(*held, Mode::shared);
  return convert(held, Mode::exclusive);
}

void LeaseChanges::check_convertible(const Lease& held, Mode from) {
  const auto refuse = [&](std::string_view why) {
    throw Error(Fault::misuse,
                fmt::format("the lock {} (token {}) {}", in_quotes(held.name()), number(held.token()), why));
  };
  if (held.mode() != from)
    refuse(fmt::format("is held in mode {}, and only {} one can be made {}", to_string(held.mode()),
                       from == Mode::exclusive ? "an exclusive" : "a shared",
                       from == Mode::exclusive ? "shared" : "exclusive"));
  if (context_.entries.inside(held) != 1) refuse("has been entered more than once: leave the inner ones first");
}

// Whether it is still one of those who share its name.
bool LeaseChanges::is_there(const Lease& held) {
  if (planted("lost_is_shared")) return true;
  return context_.retry(context_.soon(), [&](Deadline until) {
    return context_.table->lease_of_holder(held.pinned_key(), until).has_value();
  });
}

// Under another owner and the next token, so that nothing of the old grant can be taken for the new one. Where nobody
// knows what became of it, it is lost: there may be others who hold the name by then. Of a writer that is true from the
// sending on, so that its trust ends before.
std::shared_ptr<Lease> LeaseChanges::convert(const std::shared_ptr<Lease>& held, Mode to) {
  // A renewal that is under way would find that the old grant is no more.
  const PausedRenewal paused(context_.renewer, held, context_.soon());
  const std::string owner = random_identity();
  const auto terms = held->terms();
  std::optional<Instant> begun;  // max_hold goes on
  if (held->ends() != Instant::max()) begun = held->ends() - terms.max_hold;
  Instant sent{};
  Doubt unanswered;
  const bool trusted_no_longer = to == Mode::shared && !planted("writer_trusted_on");
  if (trusted_no_longer) held->trust_no_longer();
  std::optional<Token> token;
  try {
    token = context_.retry(context_.soon(), unanswered, [&](Deadline until) {
      if (!unanswered) sent = BootClock::now();  // a repeat renews nothing
      auto key = held->pinned_key();
      key.lease =
          terms.left_of_lease(begun.value_or(sent), sent);  // what is trusted, whatever others ask for meanwhile
      return to == Mode::shared ? context_.table->downgrade(key, owner, until)
                                : context_.table->upgrade(key, owner, until);
    });
    // An attempt without an answer may still do what this one was refused.
    if (!token && unanswered)
      throw Error(Fault::lost,
                  fmt::format("the lock {} (token {}) is lost: nobody answered when it was to be converted",
                              in_quotes(held->name()), number(held->token())));
  } catch (const Error&) {
    if (!(trusted_no_longer || unanswered) || planted("doubted_upgrade_kept")) throw;
    if (held->lose(Loss::unconfirmed)) context_.tell_loss(held, "nobody answered when it was to be converted");
    if (terms.delay > Duration{}) throw;  // it is lost, and not let go of: the name stays closed
    context_.renewer.free_later({held->name(), held->owner(), {}, false, held->longest(), held->mode()});
    context_.renewer.free_later({held->name(), owner, {}, false, held->longest(), to});
    throw;
  }
  if (!token) {
    if (to == Mode::exclusive && is_there(*held)) return nullptr;
    context_.lose_refused(held, "it could not be converted");
    throw Error(Fault::lost, fmt::format("the lock {} (token {}) is lost: it could not be made {}",
                                         in_quotes(held->name()), number(held->token()), to_string(to)));
  }
  auto next = std::make_shared<Lease>(Name(held->name()), owner, *token, terms, sent, begun);
  next->in_mode(to);
  next->say(*held);
  next->hand_over_state.since = sent;
  const bool was_open = context_.entries.opened(held);
  context_.entries.close(held);
  const auto job = held->belongs_to_nobody();
  context_.forget(held);
  if (unanswered) next->unanswered = true;
  context_.hold(next, job, sent);
  if (was_open) context_.open_to_job(next);
  if (to == Mode::shared) context_.queues->wake_head(next->name());
  return next;
}

}  // namespace dlock::engine
