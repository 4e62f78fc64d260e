// How those who wait in line sleep, how long they wait awake instead, how they are handed what they wait for, and for
// how long a name that goes from hand to hand in memory is kept for who comes next.
#include "engine/wait/wait_queues.hpp"

#include "types/annotated_mutex.hpp"
#include "types/mutant.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

namespace dlock::engine {
namespace {

// A thread that sleeps is awake again after some 30 us where its processor has gone to sleep as well.
constexpr Duration longest_spin = std::chrono::microseconds{50};
// Who comes when nobody is in line, and the name has been handed on in memory less than this ago, is the next.
constexpr Duration longest_round = std::chrono::milliseconds{10};
constexpr Duration longest_rest = std::chrono::minutes{10};

// Where there is one processor, who spins keeps others from what it waits for.
bool others_run_meanwhile() noexcept {
  static const bool several = std::thread::hardware_concurrency() > 1;
  return several;
}

}  // namespace

WaitQueues::WaiterState WaitQueues::attend(const WaiterPtr& waiter) {
  const MutexLock guard(mutex_, waiters_mutex);
  auto status = waiter->status_;
  const auto line = queues_.find(waiter->name_);
  status.unheard = line != queues_.end() && line->second.unheard;
  status.notified = waiter->notified_ && !waiter->everything_;
  waiter->notified_ = waiter->promoted_ = waiter->everything_ = false;
  waiter->nudge_ = Instant::max();
  waiter->status_.quiet = waiter->status_.yields = waiter->status_.ask = false;
  return status;
}

bool WaitQueues::has_news(const Waiter& waiter) noexcept {
  return waiter.state_ == Waiter::State::handed ||
         (waiter.state_ == Waiter::State::asleep && (waiter.notified_ || waiter.promoted_));
}

Instant WaitQueues::bound(const Waiter& waiter, Instant until, Instant deadline) noexcept {
  return waiter.state_ == Waiter::State::reserved ? deadline : std::min({until, waiter.nudge_, deadline});
}

WaitQueues::WakeReason WaitQueues::woken(Waiter& waiter, const std::stop_token& stop) noexcept {
  const auto state = waiter.state_;
  if (state == Waiter::State::asleep) waiter.state_ = Waiter::State::awake;
  if (state == Waiter::State::handed) return WakeReason::handed;
  if (stop.stop_requested()) return WakeReason::stopped;
  if (waiter.promoted_) return WakeReason::head;
  return waiter.notified_ ? WakeReason::notified : WakeReason::time;
}

// Waits a little without going to sleep until it is stirred since that was `seen`.
void WaitQueues::spin(const Waiter& waiter, unsigned seen) noexcept {
  const auto end = later(BootClock::now(), longest_spin);
  while (waiter.stirred_.load() == seen && BootClock::now() < end) std::this_thread::yield();
}

WaitQueues::WakeReason WaitQueues::rest(const WaiterPtr& waiter, Instant until, Instant deadline,
                                        const std::stop_token& stop) {
  UniqueMutexLock guard(mutex_, waiters_mutex);
  auto& own = *waiter;
  if (own.state_ == Waiter::State::awake) own.state_ = Waiter::State::asleep;
  for (;;) {
    const auto end = bound(own, until, deadline);
    if (has_news(own) || stop.stop_requested() || BootClock::now() >= end) break;
    if (std::exchange(own.soon_, false) && own.state_ == Waiter::State::asleep) {
      if (!others_run_meanwhile()) continue;
      const auto seen = own.stirred_.load();
      guard.unlock();
      spin(own, seen);
      guard.lock();
      continue;
    }
    // Being reserved or not, or nudged, is worth another look at the bound, too.
    const auto state = own.state_;
    const auto nudge = own.nudge_;
    // In pieces: the end of time, as this clock counts, is beyond what the condition variable's clock can count to.
    own.changed_.wait_until(
        guard, stop, std::min(end, later(BootClock::now(), longest_rest)),
        [&]() REQUIRES(waiters_mutex) { return has_news(own) || own.state_ != state || own.nudge_ != nudge; });
  }
  if (planted("wake_delayed") && has_news(own)) {
    guard.unlock();
    delay(std::chrono::milliseconds{400});
    guard.lock();
  }
  return woken(own, stop);
}

std::optional<WaitQueues::WakeReason> WaitQueues::look_up(const WaiterPtr& waiter, Instant& until, Instant deadline,
                                                          const std::stop_token& stop) {
  const MutexLock guard(mutex_, waiters_mutex);
  auto& own = *waiter;
  if (own.state_ == Waiter::State::awake) own.state_ = Waiter::State::asleep;
  const auto end = bound(own, until, deadline);
  if (has_news(own) || stop.stop_requested() || BootClock::now() >= end) return woken(own, stop);
  until = end;
  return std::nullopt;
}

bool WaitQueues::is_next_in_line(const std::string& name) const {
  if (!anybody() && rounds_.load() == 0) return false;
  const MutexLock guard(mutex_, waiters_mutex);
  const auto found = queues_.find(name);
  return found != queues_.end() && (!found->second.queue.empty() || found->second.goes_round());
}

WaitQueues::WaiterPtr WaitQueues::reserve(const std::string& name, bool soon) {
  auto waiter = reserve_now(name);
  if (!soon || !others_run_meanwhile()) return waiter;
  for (const auto end = later(BootClock::now(), longest_spin); !waiter && BootClock::now() < end;) {
    std::this_thread::yield();
    waiter = reserve_now(name);
  }
  return waiter;
}

WaitQueues::WaiterPtr WaitQueues::reserve_now(const std::string& name) {
  if (!anybody()) return nullptr;
  const MutexLock guard(mutex_, waiters_mutex);
  const auto found = queues_.find(name);
  if (found == queues_.end() || found->second.queue.empty()) return nullptr;
  const auto& head = found->second.queue.front();
  if (!head->takes_ || head->state_ != Waiter::State::asleep || head->status_.dead) return nullptr;
  head->reserved_ticket_ = head->status_.ticket;
  head->followed_ = found->second.queue.size() > 1;
  head->state_ = Waiter::State::reserved;  // it sleeps on, and learns of it when it wakes up before it is settled
  return head;
}

bool WaitQueues::settle(const WaiterPtr& waiter, std::shared_ptr<Lease> grant, bool doubt) {
  UniqueMutexLock guard(mutex_, waiters_mutex);
  if (waiter->state_ == Waiter::State::left) return false;
  WaiterPtr next;
  if (grant) {
    const auto quiet = std::min(waiter->request_->terms.lease, floor_);
    const bool soon = grant->hand_over_state.reserved > 1;
    waiter->grant_ = std::move(grant);
    waiter->state_ = Waiter::State::handed;
    next = remove(waiter, quiet, true, soon);
    if (soon) note_round(waiter->name_);
  } else {
    waiter->state_ = Waiter::State::asleep;
    if (!planted("silent_hand_over_failure")) waiter->notified_ = true;
    waiter->status_.ask = doubt;
  }
  // Who sleeps needs the mutex when it wakes up; who waits without a thread does not, and may be called no more once it
  // has left.
  std::array<WaiterPtr, 2> sleepers{waiter, std::move(next)};
  for (auto& each : sleepers)
    if (each && each->call()) each = nullptr;
  guard.unlock();
  for (const auto& each : sleepers)
    if (each) each->changed_.notify_all();
  return true;
}

void WaitQueues::end_round(WaitQueue& line) {
  if (std::exchange(line.goes_round_until, Instant::min()) != Instant::min()) --rounds_;
}

void WaitQueues::drop(Queues::iterator idle) {
  end_round(idle->second);
  queues_.erase(idle);
}

void WaitQueues::note_round(const std::string& name) {
  auto& line = queues_[name];
  if (line.goes_round_until == Instant::min()) ++rounds_;
  line.goes_round_until = later(BootClock::now(), longest_round);
}

}  // namespace dlock::engine
