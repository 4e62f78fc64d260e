// This file knows how trust moves and ends.
#include "engine/held.hpp"

#include "engine/trust.hpp"

namespace dlock::engine {
namespace {

// Shorter leases are over before a renewal could be confirmed with some certainty.
constexpr Duration shortest_renewed = std::chrono::milliseconds{300};

}  // namespace

Held::Held(Name name, std::string owner, Token token, const Terms& terms, Instant sent)
    : name_(std::move(name)),
      owner_(std::move(owner)),
      token_(token),
      renewable_(terms.renew && terms.lease >= shortest_renewed),
      terms_(terms),
      sent_(sent),
      until_(trust_end(sent, terms.lease, terms.margin).time_since_epoch().count()) {}

Held::Terms Held::terms() const {
  const std::lock_guard guard(mutex_);
  return terms_;
}

Duration Held::remaining(Instant now) const noexcept {
  if (!valid(now)) return Duration{};
  return std::chrono::floor<Duration>(trusted_until() - now);
}

void Held::confirmed(Instant sent) {
  const std::lock_guard guard(mutex_);
  if (sent <= sent_) return;
  sent_ = sent;
  until_.store(trust_end(sent, terms_.lease, terms_.margin).time_since_epoch().count(), std::memory_order_release);
}

void Held::confirmed(Instant sent, const Terms& terms) {
  const std::lock_guard guard(mutex_);
  terms_ = terms;
  sent_ = sent;
  until_.store(trust_end(sent, terms.lease, terms.margin).time_since_epoch().count(), std::memory_order_release);
}

Instant Held::next_renewal() const {
  const std::lock_guard guard(mutex_);
  return later(sent_, terms_.renew_every.value_or(terms_.lease / 3));
}

bool Held::lose(Loss loss) noexcept {
  int expected = holding;
  return end_.compare_exchange_strong(expected, static_cast<int>(loss), std::memory_order_acq_rel);
}

bool Held::let_go() noexcept {
  int expected = holding;
  return end_.compare_exchange_strong(expected, gone, std::memory_order_acq_rel);
}

std::optional<Loss> Held::loss() const noexcept {
  const int end = end_.load(std::memory_order_acquire);
  if (end < 0) return std::nullopt;
  return static_cast<Loss>(end);
}

}  // namespace dlock::engine
