// How terms are made of options, and which of them are refused.
#include "engine/lease/lease_policy.hpp"

#include "engine/lease/trust.hpp"
#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace dlock::engine {

// Each acquisition of permits is one of its own.
Reentrance LeasePolicy::reentrance_of(const LockOptions& options) const {
  return options.mode == Mode::permits ? Reentrance::none : options.reentrance.value_or(options_.reentrance);
}

LeaseTerms LeasePolicy::terms_of(const LockOptions& options) const {
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

LeaseTerms LeasePolicy::with_margin(LeaseTerms terms) const {
  auto margin = margin_of(terms.asked(), table_.smallest_margin(), options_.margin);
  if (planted("no_margin")) margin = Duration{};
  if (margin >= terms.asked())
    throw Error(Fault::misuse,
                fmt::format("a lease of {} us would never be valid: it must be longer than its margin of {} us{}",
                            terms.asked().count(), margin.count(),
                            options_.margin ? " (EngineOptions::margin)" : ", the least on this database"));
  if (terms.delay > Duration{} && terms.lease >= until_released)
    throw Error(Fault::misuse, fmt::format("LockOptions::delay_after_loss {} us is not for a lease of {} us, which is "
                                           "until_released, or would be with it",
                                           terms.delay.count(), terms.asked().count()));
  terms.margin = margin + (planted("delay_is_trusted") ? Duration{} : terms.delay);
  return terms;
}

void LeasePolicy::check_pace(const LeaseTerms& terms) const {
  if (terms.renew && terms.renew_every > Duration{} && terms.renew_every >= terms.lease - terms.margin)
    throw Error(Fault::misuse,
                fmt::format("LockOptions::renew_every {} us must be shorter than the lease of {} us without "
                            "its margin of {} us",
                            terms.renew_every.count(), terms.asked().count(), (terms.margin - terms.delay).count()));
}

}  // namespace dlock::engine
