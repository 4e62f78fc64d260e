// This file knows how the end of trust is watched. A renewal does not touch the timer: when it fires early, the
// grant is put back to where its trust ends now.
#include "engine/trust_timer.hpp"

#include "engine/alarm.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
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
  Agenda ends{Agenda::Kind::trust};
  Instant armed = Instant::max();
  bool closing = false;

  void place(const std::shared_ptr<Held>& held) {
    ends.put(held, held->trusted_until());
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
    std::vector<std::pair<Instant, std::shared_ptr<Held>>> stay;
    while (!ends.empty() && ends.first() <= horizon) {
      const auto at = ends.first();
      auto held = ends.take(*ends.front());
      const auto until = held->trusted_until();
      if (until <= now || (held->ended() && at <= now)) over.push_back(std::move(held));
      else stay.emplace_back(std::max(at, until), std::move(held));
    }
    for (const auto& [at, held] : stay) ends.put(held, at);
    arm(ends.first());
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
  state_->place(held);
  if (!thread_.started()) thread_.start([state = state_] { state->run(); });
}

void TrustTimer::forget(const std::shared_ptr<Held>& held) {
  const std::lock_guard guard(state_->mutex);
  state_->ends.take(*held);
}

}  // namespace dlock::engine
