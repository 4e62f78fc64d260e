// This file knows how the end of trust is watched. A renewal does not touch the timer: when it fires early, the
// grant is put back to where its trust ends now.
#include "engine/trust_timer.hpp"

#include "engine/alarm.hpp"

#include <mutex>
#include <vector>

namespace dlock::engine {
namespace {

// How far ahead entries are looked at when the timer has fired: where thousands of leases were granted one after
// another and are renewed together, each of them would fire once otherwise.
constexpr Duration look_ahead = std::chrono::seconds{1};

}  // namespace

struct TrustTimer::State {
  explicit State(std::shared_ptr<Reporter> news) : reporter(std::move(news)) {}
  const std::shared_ptr<Reporter> reporter;
  Alarm alarm;
  std::mutex mutex;
  // Guarded by mutex:
  Schedule schedule;
  Instant armed = Instant::max();
  bool closing = false;

  void place(const std::shared_ptr<Held>& held) {
    held->in_timer = schedule.emplace(held->trusted_until(), held);
    if (held->trusted_until() < armed) arm(held->trusted_until());
  }

  void arm(Instant at) {
    armed = at;
    alarm.set(at);
  }

  // Takes out what has run out by now; what was renewed meanwhile goes back in.
  std::vector<std::shared_ptr<Held>> run_out() {
    std::vector<std::shared_ptr<Held>> over;
    const std::lock_guard guard(mutex);
    const auto now = BootClock::now();
    const auto horizon = later(now, look_ahead);
    for (auto entry = schedule.begin(); entry != schedule.end() && entry->first <= horizon;) {
      auto& held = entry->second;
      const auto until = held->trusted_until();
      if (until <= now || (held->ended() && entry->first <= now)) {
        held->in_timer.reset();
        over.push_back(std::move(held));
        entry = schedule.erase(entry);
      } else if (until > entry->first) {
        held->in_timer = schedule.emplace(until, held);
        entry = schedule.erase(entry);
      } else {
        ++entry;
      }
    }
    arm(schedule.empty() ? Instant::max() : schedule.begin()->first);
    return over;
  }

  void run() {
    for (;;) {
      alarm.wait();
      {
        const std::lock_guard guard(mutex);
        if (closing) return;
      }
      for (auto& held : run_out())
        if (const auto loss = held->running_out(); held->lose(loss)) reporter->tell_loss(std::move(held), in_words(loss));
    }
  }
};

TrustTimer::TrustTimer(std::shared_ptr<Reporter> reporter) : state_(std::make_shared<State>(std::move(reporter))) {}

TrustTimer::~TrustTimer() {
  {
    const std::lock_guard guard(state_->mutex);
    state_->closing = true;
  }
  state_->alarm.ring();
}

void TrustTimer::watch(const std::shared_ptr<Held>& held) {
  const std::lock_guard guard(state_->mutex);
  if (held->in_timer) state_->schedule.erase(*held->in_timer);
  state_->place(held);
  if (!thread_.started()) thread_.start([state = state_] { state->run(); });
}

void TrustTimer::forget(const std::shared_ptr<Held>& held) {
  const std::lock_guard guard(state_->mutex);
  if (!held->in_timer) return;
  state_->schedule.erase(*held->in_timer);
  held->in_timer.reset();
}

}  // namespace dlock::engine
