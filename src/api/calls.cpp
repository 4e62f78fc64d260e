// How a call is counted, and how the end of its engine reaches it.
#include "api/calls.hpp"

#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace dlock::api {
namespace {

thread_local const Call* innermost = nullptr;

}  // namespace

void Calls::end(Instant deadline) noexcept {
  ending_.store(true);
  if (!planted("end_stops_nobody")) end_.request_stop();
  int own = 0;
  for (const auto* call = innermost; call != nullptr; call = call->outer_) own += call->calls_.get() == this ? 1 : 0;
  UniqueMutexLock guard(mutex_);
  while (!left_.wait_until(guard, countable(deadline), [&] { return count_.load() <= own; }))
    if (BootClock::now() >= deadline) return;
}

void Calls::leave() noexcept {
  count_.fetch_sub(1);
  if (!ending_.load()) return;
  const MutexLock guard(mutex_);
  left_.notify_all();
}

Call::Call(std::shared_ptr<Calls> calls) noexcept : calls_(std::move(calls)), outer_(innermost) {
  innermost = this;
  calls_->count_.fetch_add(1);
}

Call::~Call() {
  innermost = outer_;
  calls_->leave();
}

std::stop_token Call::stopped_by(std::stop_token caller) {
  if (!caller.stop_possible()) return calls_->end_.get_token();
  either_.emplace();
  either_->caller.emplace(std::move(caller), Stop{&either_->source});
  either_->end.emplace(calls_->end_.get_token(), Stop{&either_->source});
  return either_->source.get_token();
}

void Call::check() const {
  if (calls_->ended()) throw Error(Fault::misuse, "the engine was destroyed while this call waited on it");
}

}  // namespace dlock::api
