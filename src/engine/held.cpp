// This file knows how trust moves and ends.
#include "engine/held.hpp"

#include "engine/trust.hpp"

#include <algorithm>

namespace dlock::engine {
namespace {

// Shorter leases are over before a renewal could be confirmed with some certainty.
constexpr Duration shortest_renewed = std::chrono::milliseconds{300};

}  // namespace

Held::Held(Name name, std::string_view owner, Token token, const Terms& terms, Instant sent, std::string_view entry)
    : name_(std::move(name)),
      owner_(owner),
      token_(token),
      ends_(terms.max_hold > Duration{} ? later(sent, terms.max_hold) : Instant::max()),
      inside_(entry.empty() ? nullptr : std::make_unique<Inside>(Inside{std::string(entry)})),
      terms_(terms),
      sent_(sent),
      renewable_(terms.renew && terms.lease >= shortest_renewed),
      final_(later(sent, terms.lease) >= ends_),
      until_(trust_from(sent, terms).time_since_epoch().count()) {}

// It is held for a few instructions, and inside of any other: some for all grants do.
std::mutex& Held::mutex() const noexcept {
  static std::array<std::mutex, 64> mutexes;
  return mutexes[reinterpret_cast<std::uintptr_t>(this) / sizeof(Held) % mutexes.size()];
}

Instant Held::trust_from(Instant sent, const Terms& terms) const noexcept {
  const auto until = trust_end(sent, terms.lease, terms.margin);
  return ends_ == Instant::max() ? until : std::min(until, ends_ - terms.margin);
}

Instant Held::last_renewal() const {
  const std::lock_guard guard(mutex());
  return ends_ == Instant::max() ? ends_ : ends_ - terms_.lease;
}

Held::Terms Held::terms() const {
  const std::lock_guard guard(mutex());
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
  const std::lock_guard guard(mutex());
  if (!valid(BootClock::now())) return false;
  if (sent <= sent_) return true;
  sent_ = sent;
  until_.store(trust_from(sent, terms_).time_since_epoch().count(), std::memory_order_release);
  return true;
}

bool Held::confirmed(Instant sent, const Terms& terms) {
  const std::lock_guard guard(mutex());
  if (!valid(BootClock::now())) return false;
  terms_ = terms;
  sent_ = sent;
  until_.store(trust_from(sent, terms).time_since_epoch().count(), std::memory_order_release);
  final_.store(later(sent, terms.lease) >= ends_, std::memory_order_release);
  return true;
}

Window Held::renewal(Share share) const {
  const std::lock_guard guard(mutex());
  std::optional<Duration> every;
  if (terms_.renew_every > Duration{}) every = terms_.renew_every;
  return renewal_window(sent_, terms_.lease, every, share);
}

std::stop_token Held::lost() const noexcept {
  const std::lock_guard guard(mutex());
  if (!lost_.stop_possible()) {
    lost_ = std::stop_source();
    if (signalled_) lost_.request_stop();  // nobody has registered a callback yet
  }
  return lost_.get_token();
}

void Held::signal_loss() noexcept {
  std::stop_source lost(std::nostopstate);
  {
    const std::lock_guard guard(mutex());
    signalled_ = true;
    lost = lost_;
  }
  lost.request_stop();
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
