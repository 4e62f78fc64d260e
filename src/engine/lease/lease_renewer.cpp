// When a lease joins the renewer's rounds and leaves them, and how renewing one is paused. What a round does:
// lease_renewer_rounds.hpp; when a lease is due: renewal.hpp.
#include "engine/lease/lease_renewer.hpp"

#include "engine/lease/lease_renewer_rounds.hpp"

#include <exception>

namespace dlock::engine {

LeaseRenewer::LeaseRenewer(std::shared_ptr<store::LockTable> table, std::shared_ptr<EventQueue> events,
                           std::shared_ptr<WaitQueues> queues, Duration request_timeout)
    : state_(std::make_shared<State>(std::move(table), std::move(events), std::move(queues), request_timeout)) {}

LeaseRenewer::~LeaseRenewer() { state_->finish(); }

void LeaseRenewer::close(Instant until) noexcept { state_->close(until); }

void LeaseRenewer::start() {
  const MutexLock guard(state_->mutex);
  state_->start();
}

void LeaseRenewer::add(const std::shared_ptr<Lease>& held) {
  const MutexLock guard(state_->mutex, Lease::renewer_mutex);
  held->renewal_state.watched = held->renewable();
  state_->unschedule(*held);
  if (held->renewal_state.watched) state_->schedule(held, held->renewal(state_->share));
  held->renewal_state.in_round = false;  // a round under way finds it gone, and lets it be
  if (held->renewal_state.watched && !planted("renewer_tried_once")) state_->start();
}

void LeaseRenewer::remove(const std::shared_ptr<Lease>& held) {
  const MutexLock guard(state_->mutex, Lease::renewer_mutex);
  held->renewal_state.watched = held->renewal_state.in_round = false;
  state_->unschedule(*held);
  if (state_->over == state_->round) state_->shrink();
}

bool LeaseRenewer::pause(const std::shared_ptr<Lease>& held, Instant deadline) {
  UniqueMutexLock guard(state_->mutex, Lease::renewer_mutex);
  ++held->renewal_state.pauses;
  state_->unschedule(*held);
  while (state_->over < held->renewal_state.round && !state_->closing) {
    if (BootClock::now() >= deadline) return false;
    state_->wait(guard, deadline);
  }
  return true;
}

void LeaseRenewer::resume(const std::shared_ptr<Lease>& held) noexcept {
  const MutexLock guard(state_->mutex, Lease::renewer_mutex);
  if (held->renewal_state.pauses == 0 || --held->renewal_state.pauses > 0 || held->renewal_state.in_round) return;
  try {
    state_->schedule(held, held->renewal(state_->share));
  } catch (const std::exception&) {  // out of memory: then it is lost when trust runs out, and told
  }
}

void LeaseRenewer::free_later(Leftover leftover) {
  const MutexLock guard(state_->mutex);
  state_->wake_for(state_->leftovers.add(std::move(leftover), BootClock::now()));
  state_->start();
}

bool LeaseRenewer::has_leftovers(std::string_view name) const {
  if (state_->no_leftovers()) return false;
  const MutexLock guard(state_->mutex);
  return state_->leftovers.has(name);
}

std::optional<Leftover> LeaseRenewer::leftover(std::string_view name, std::string_view owner, Token token) const {
  if (state_->no_leftovers()) return std::nullopt;
  const MutexLock guard(state_->mutex);
  return state_->leftovers.holding(name, owner, token);
}

}  // namespace dlock::engine
