// Gives a lease another length.
#include "engine/core.hpp"
#include "engine/retry.hpp"
#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace dlock {
inline namespace v0 {

using engine::Lease;

void Core::extend(const std::shared_ptr<Lease>& held, const Extension& wish, Instant by) {
  const auto now = BootClock::now();
  auto terms = held->terms();
  terms.lease = wish.lease + terms.delay;
  if (later(now, terms.lease) > held->ends())
    throw Error(
        Fault::misuse,
        fmt::format("the lease {} us is longer than the {} us that LockOptions::max_hold leaves the lock {}",
                    wish.lease.count(),
                    std::max(Duration{}, std::chrono::floor<Duration>(held->ends() - now) - terms.delay).count(),
                    in_quotes(held->name())));
  terms = with_margin(terms);
  // The pace says nothing where max_hold ends the lease before the next renewal.
  if (later(later(now, terms.renew_every), terms.lease) <= held->ends()) check_pace(terms);
  terms = held->ask_for(terms, wish.only_longer);
  watch(held);
  Instant sent{};
  const auto renewal = retry(by, [&](Deadline deadline) {
    sent = BootClock::now();
    const auto room = std::chrono::floor<Duration>(held->ends() - sent);  // an attempt that is repeated has less
    return table_->extend(held->pinned_key(), std::clamp<Duration>(room, Duration{}, terms.lease), wish.closed_for,
                          deadline);
  });
  if (renewal == store::Renewed::lost ||
      !held->extended(planted("extend_trusts_answer") ? BootClock::now() : sent, terms, wish.only_longer)) {
    if (held->lose(Loss::refused)) events_->emit_loss(held, "it could not be extended: the lease is no longer ours");
    throw Error(Fault::lost, fmt::format("the lock {} (token {}) is lost: it could not be extended",
                                         in_quotes(held->name()), number(held->token())));
  }
  held->wanted_is(renewal.wanted);
  if (renewal.wanted) events_->ask(held);
  watch(held);
}

}  // namespace v0
}  // namespace dlock
