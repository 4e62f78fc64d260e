// Which leases are kept, and by whom they are let go.
#include "engine/keeper.hpp"

#include "engine/keeper_rounds.hpp"

#include <exception>
#include <mutex>

namespace dlock::engine {

Keeper::Keeper(std::shared_ptr<store::LockTable> table, std::shared_ptr<Reporter> reporter, Duration request_timeout)
    : state_(std::make_shared<State>(std::move(table), std::move(reporter), request_timeout)) {}

Keeper::~Keeper() { close(); }

void Keeper::close(Instant until) noexcept {
  const std::lock_guard guard(state_->mutex);
  state_->closing = true;
  state_->ends_by = std::min(state_->ends_by, until);
  state_->alarm.ring();
  state_->round_over.notify_all();
}

// Called with the state's mutex held.
void Keeper::ensure_running() {
  if (!thread_.started()) thread_.start([state = state_] { state->run(); });
}

void Keeper::start() {
  const std::lock_guard guard(state_->mutex);
  ensure_running();
}

void Keeper::watch(const std::shared_ptr<Held>& held) {
  const std::lock_guard guard(state_->mutex);
  held->upkeep.watched = held->renewable();
  state_->unschedule(*held);
  if (held->upkeep.watched) state_->schedule(held, held->renewal(state_->share));
  held->upkeep.in_round = false;  // a round under way finds it gone, and lets it be
  if (!held->upkeep.watched) return;
  ensure_running();
}

void Keeper::forget(const std::shared_ptr<Held>& held) {
  const std::lock_guard guard(state_->mutex);
  held->upkeep.watched = held->upkeep.in_round = false;
  state_->unschedule(*held);
  if (state_->over == state_->round) state_->shrink();
}

bool Keeper::hold_back(const std::shared_ptr<Held>& held, Instant deadline) {
  std::unique_lock guard(state_->mutex);
  ++held->upkeep.held_back;
  state_->unschedule(*held);
  // The end of time itself overflows in the standard library's arithmetic; no round takes anything like a day.
  const auto until = std::min(deadline, later(BootClock::now(), std::chrono::hours{24}));
  return state_->round_over.wait_until(
      guard, until, [&] { return state_->over >= held->upkeep.round || state_->closing; });
}

void Keeper::resume(const std::shared_ptr<Held>& held) noexcept {
  const std::lock_guard guard(state_->mutex);
  if (held->upkeep.held_back == 0 || --held->upkeep.held_back > 0 || held->upkeep.in_round) return;
  try {
    state_->schedule(held, held->renewal(state_->share));
  } catch (const std::exception&) {  // out of memory: then it is lost when trust runs out, and told
  }
}

void Keeper::free_later(Leftover leftover) {
  const std::lock_guard guard(state_->mutex);
  state_->wake_for(state_->leftovers.add(std::move(leftover), BootClock::now()));
  ensure_running();
}

bool Keeper::has_leftovers(std::string_view name) const {
  if (state_->leftovers.none()) return false;
  const std::lock_guard guard(state_->mutex);
  return state_->leftovers.has(name);
}

std::optional<Leftover> Keeper::leftover(std::string_view name, std::string_view owner, Token token) const {
  if (state_->leftovers.none()) return std::nullopt;
  const std::lock_guard guard(state_->mutex);
  return state_->leftovers.holding(name, owner, token);
}

}  // namespace dlock::engine
