// Watches the end of trust. A renewal does not touch the timer: when it fires early, the grant is put back to where its
// trust ends now.
#include "engine/lease/trust_timer.hpp"

#include "engine/lease/boot_timer.hpp"
#include "types/mutant.hpp"
#include "types/worker.hpp"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

namespace dlock::engine {
namespace {

// How far ahead entries are looked at when the timer has fired: where thousands of leases were granted one after
// another and are renewed together, each of them would fire once otherwise.
constexpr Duration look_ahead = std::chrono::seconds{1};
constexpr Duration until_again = std::chrono::milliseconds{100};

}  // namespace

struct TrustTimer::State : Worker {
  explicit State(std::shared_ptr<EventQueue> news) : events(std::move(news)) {}
  const std::shared_ptr<EventQueue> events;
  const std::shared_ptr<BootTimer> timer = std::make_shared<BootTimer>();
  DeadlineQueue ends GUARDED_BY(mutex){DeadlineQueue::SortedBy::trust};
  Instant armed GUARDED_BY(mutex) = Instant::max();

  void place(const std::shared_ptr<Lease>& held) REQUIRES(mutex) {
    ends.put(held, held->trusted_until());
    if (held->trusted_until() < armed) arm(held->trusted_until());
  }

  void arm(Instant at) REQUIRES(mutex) {
    armed = at;
    timer->set(at);
  }

  // Takes out what has run out by now; what was renewed meanwhile goes back in.
  std::vector<std::shared_ptr<Lease>> run_out() {
    std::vector<std::shared_ptr<Lease>> over;
    const MutexLock guard(mutex);
    const auto now = BootClock::now();
    const auto horizon = later(now, look_ahead);
    std::vector<std::pair<Instant, std::shared_ptr<Lease>>> stay;
    over.reserve(ends.size());  // from here on nothing asks for memory
    stay.reserve(ends.size());
    while (!ends.empty() && ends.first() <= horizon) {
      const auto at = ends.first();
      const auto held = ends.front();
      const auto until = held->trusted_until();
      if (until <= now || (held->ended() && at <= now)) over.push_back(held);
      else stay.emplace_back(std::max(at, until), held);
      ends.take(*held);
    }
    for (const auto& [at, held] : stay) ends.put(held, at);
    ends.shrink();
    arm(ends.first());
    return over;
  }

  void wake() noexcept override { timer->wake(); }

  void run() override {
    for (;;) {
      timer->wait();
      if (is_closing()) return;
      try {
        for (const auto& held : run_out())
          if (const auto loss = held->running_out(); held->lose(loss)) events->emit_loss(held, in_words(loss));
      } catch (const std::exception&) {  // out of memory
        const MutexLock guard(mutex);
        arm(later(BootClock::now(), until_again));
      }
      // This thread never runs a callback, and so can see that others do not get to theirs.
      const auto next = events->look_after();
      const MutexLock guard(mutex);
      if (next < armed) arm(next);
    }
  }
};

TrustTimer::TrustTimer(std::shared_ptr<EventQueue> events) : state_(std::make_shared<State>(std::move(events))) {
  state_->events->on_delay([timer = state_->timer] { timer->wake(); });
}

TrustTimer::~TrustTimer() { state_->finish(); }

void TrustTimer::watch(const std::shared_ptr<Lease>& held) {
  const MutexLock guard(state_->mutex);
  state_->place(held);
  if (!planted("renewer_tried_once")) state_->start();
}

void TrustTimer::start() {
  const MutexLock guard(state_->mutex);
  state_->start();
}

void TrustTimer::forget(const std::shared_ptr<Lease>& held) {
  const MutexLock guard(state_->mutex);
  state_->ends.take(*held);
  state_->ends.shrink();
}

bool TrustTimer::any(const std::function<bool(const Lease&)>& is) const {
  const MutexLock guard(state_->mutex);
  return state_->ends.any(is);
}

std::vector<std::shared_ptr<Lease>> TrustTimer::watched() const {
  const MutexLock guard(state_->mutex);
  return state_->ends.all();
}

}  // namespace dlock::engine
