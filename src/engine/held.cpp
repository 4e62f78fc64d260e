// This file knows how trust moves and ends.
#include "engine/held.hpp"

#include "engine/trust.hpp"

#include <algorithm>

namespace dlock::engine {
namespace {

// Shorter leases are over before a renewal could be confirmed with some certainty.
constexpr Duration shortest_renewed = std::chrono::milliseconds{300};

}  // namespace

Held::Held(Name name, std::string owner, Token token, const Terms& terms, Instant sent, std::string entry)
    : name_(std::move(name)),
      owner_(std::move(owner)),
      entry_(std::move(entry)),
      token_(token),
      renewable_(terms.renew && terms.lease >= shortest_renewed),
      ends_(terms.max_hold > Duration{} ? later(sent, terms.max_hold) : Instant::max()),
      terms_(terms),
      sent_(sent),
      until_(trust_from(sent, terms).time_since_epoch().count()),
      final_(later(sent, terms.lease) >= ends_) {}

Instant Held::trust_from(Instant sent, const Terms& terms) const noexcept {
  const auto until = trust_end(sent, terms.lease, terms.margin);
  return ends_ == Instant::max() ? until : std::min(until, ends_ - terms.margin);
}

Instant Held::last_renewal() const {
  const std::lock_guard guard(mutex_);
  return ends_ == Instant::max() ? ends_ : ends_ - terms_.lease;
}

Held::Terms Held::terms() const {
  const std::lock_guard guard(mutex_);
  return terms_;
}

bool Held::valid(Instant now) const noexcept {
  if (ended()) return false;
  if (now < trusted_until()) return true;
  int expected = holding;
  end_.compare_exchange_strong(expected, static_cast<int>(running_out()), std::memory_order_acq_rel);
  return false;
}

Duration Held::remaining(Instant now) const noexcept {
  if (!valid(now)) return Duration{};
  return std::max(Duration{}, std::chrono::floor<Duration>(trusted_until() - now));
}

bool Held::confirmed(Instant sent) {
  const std::lock_guard guard(mutex_);
  if (!valid(BootClock::now())) return false;
  if (sent <= sent_) return true;
  sent_ = sent;
  until_.store(trust_from(sent, terms_).time_since_epoch().count(), std::memory_order_release);
  return true;
}

bool Held::confirmed(Instant sent, const Terms& terms) {
  const std::lock_guard guard(mutex_);
  if (!valid(BootClock::now())) return false;
  terms_ = terms;
  sent_ = sent;
  until_.store(trust_from(sent, terms).time_since_epoch().count(), std::memory_order_release);
  final_.store(later(sent, terms.lease) >= ends_, std::memory_order_release);
  return true;
}

Window Held::renewal(Share share) const {
  const std::lock_guard guard(mutex_);
  return renewal_window(sent_, terms_.lease, terms_.renew_every, share);
}

bool Held::lose(Loss loss) noexcept {
  int expected = holding;
  end_.compare_exchange_strong(expected, static_cast<int>(loss), std::memory_order_acq_rel);
  return this->loss() && !told_.exchange(true, std::memory_order_acq_rel);
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
