// Which leases are kept, and by whom they are let go.
#include "engine/lease/lease_renewer.hpp"

#include "engine/lease/lease_renewer_rounds.hpp"
#include "types/annotated_mutex.hpp"

#include <exception>

namespace dlock::engine {

LeaseRenewer::LeaseRenewer(std::shared_ptr<store::LockTable> table, std::shared_ptr<EventQueue> events,
                           Duration request_timeout)
    : state_(std::make_shared<State>(std::move(table), std::move(events), request_timeout)) {}

LeaseRenewer::~LeaseRenewer() { close(); }

void LeaseRenewer::ensure_running() REQUIRES(state_->mutex) {
  if (!thread_.started()) thread_.start([state = state_] { state->run(); });
}

void LeaseRenewer::close(Instant until) noexcept {
  const MutexLock guard(state_->mutex);
  state_->closing = true;
  state_->ends_by = std::min(state_->ends_by, until);
  state_->timer.wake();
  state_->round_over.notify_all();
}

void LeaseRenewer::start() {
  const MutexLock guard(state_->mutex);
  ensure_running();
}

void LeaseRenewer::add(const std::shared_ptr<Lease>& held) {
  const MutexLock guard(state_->mutex, Lease::renewer_mutex);
  held->renewal_state.watched = held->renewable();
  state_->unschedule(*held);
  if (held->renewal_state.watched) state_->schedule(held, held->renewal(state_->share));
  held->renewal_state.in_round = false;  // a round under way finds it gone, and lets it be
  if (held->renewal_state.watched && !planted("renewer_tried_once")) ensure_running();
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
  // The end of time itself overflows in the standard library's arithmetic; no round takes anything like a day.
  const auto until = std::min(deadline, later(BootClock::now(), std::chrono::hours{24}));
  return state_->round_over.wait_until(guard, until, [&]() REQUIRES(state_->mutex, Lease::renewer_mutex) {
    return state_->over >= held->renewal_state.round || state_->closing;
  });
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
  ensure_running();
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
