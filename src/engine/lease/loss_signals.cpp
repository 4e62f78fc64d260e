// Keeps as many threads for losses as there are callbacks that block.
#include "engine/lease/loss_signals.hpp"

#include "types/annotated_mutex.hpp"
#include "types/mutant.hpp"
#include "types/thread.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <list>
#include <utility>

namespace dlock::engine {
namespace {

// A loss that has waited for so long gets a thread of its own. Callbacks that only note the loss are through by then.
constexpr Duration patience = std::chrono::milliseconds{5};
constexpr Duration linger = std::chrono::seconds{5};
// Where the system has no thread to give.
constexpr Duration until_again = std::chrono::milliseconds{100};

}  // namespace

struct LossSignals::State : std::enable_shared_from_this<State> {
  struct PendingSignal {
    std::shared_ptr<Lease> held;
    void (Lease::*signal)() noexcept;
    Instant since;
  };
  struct SignalThread {
    Thread thread{};
    bool over = false;
  };

  AnnotatedMutex mutex;
  std::condition_variable changed, ended;
  std::deque<PendingSignal> waiting GUARDED_BY(mutex);
  std::list<SignalThread> workers GUARDED_BY(mutex);
  std::size_t idle GUARDED_BY(mutex) = 0, running GUARDED_BY(mutex) = 0;
  bool closing GUARDED_BY(mutex) = false;
  std::function<void()> call GUARDED_BY(mutex);

  void work(SignalThread& me) {
    UniqueMutexLock guard(mutex);
    for (;;) {
      ++idle;
      const bool called = changed.wait_until(guard, later(BootClock::now(), linger),
                                             [&]() REQUIRES(mutex) { return closing || !waiting.empty(); });
      --idle;
      if (waiting.empty() && (closing || !called)) break;
      if (waiting.empty()) continue;
      {
        const auto [held, signal, since] = std::move(waiting.front());
        waiting.pop_front();
        guard.unlock();
        (held.get()->*signal)();
      }
      guard.lock();
    }
    --running;
    me.over = true;
    ended.notify_all();
  }

  // False: the system has no thread to give.
  bool start_one() noexcept REQUIRES(mutex) {
    try {
      auto& worker = workers.emplace_back();
      try {
        worker.thread.start([self = shared_from_this(), &worker] { self->work(worker); });
      } catch (...) {
        workers.pop_back();
        throw;
      }
    } catch (const std::exception&) { return false; }
    ++running;
    return true;
  }

  // Not waited for: what the program keeps for each thread may take its time to go.
  void forget_ended() noexcept REQUIRES(mutex) {
    std::erase_if(workers, [](SignalThread& worker) {
      if (worker.over) worker.thread.let_be();
      return worker.over;
    });
  }
};

LossSignals::LossSignals() : state_(std::make_shared<State>()) {}

LossSignals::~LossSignals() { close(Instant::min()); }

void LossSignals::on_delay(std::function<void()> call) {
  const MutexLock guard(state_->mutex);
  state_->call = std::move(call);
}

void LossSignals::fire(const std::shared_ptr<Lease>& held) noexcept {
  if (held->signal_unheard()) return;
  try {
    queue(held, &Lease::signal_loss);
  } catch (const std::exception&) {  // out of memory, and lost() is worth more than this thread's time
    held->signal_loss();
  }
}

void LossSignals::fire_asked(const std::shared_ptr<Lease>& held) noexcept {
  try {
    queue(held, &Lease::signal_asked);
  } catch (const std::exception&) { held->unask(); }
}

void LossSignals::queue(const std::shared_ptr<Lease>& held, void (Lease::*signal)() noexcept) {
  std::function<void()> call;
  {
    auto& state = *state_;
    const MutexLock guard(state.mutex);
    state.waiting.push_back({held, signal, BootClock::now()});
    state.changed.notify_one();
    if (state.waiting.size() <= state.idle || (state.running == 0 && state.start_one())) return;
    call = state.call;
  }
  if (call) call();
}

Instant LossSignals::look_after() noexcept {
  auto& state = *state_;
  const MutexLock guard(state.mutex);
  state.forget_ended();
  if (state.waiting.empty()) return Instant::max();
  const auto now = BootClock::now();
  // By a quarter at a time, so that callbacks that take a little do not get a thread each.
  auto wanted = state.running == 0 ? 1 : std::max<std::size_t>(1, state.running / 4);
  for (const auto& told : state.waiting) {
    if (wanted == 0 || (state.running > 0 && later(told.since, patience) > now)) break;
    if (!state.start_one()) return planted("loss_not_told_again") ? Instant::max() : later(now, until_again);
    --wanted;
  }
  return std::max(later(state.waiting.front().since, patience), later(now, patience));
}

void LossSignals::close(Instant until) noexcept {
  UniqueMutexLock guard(state_->mutex);
  state_->closing = true;
  state_->changed.notify_all();
  const auto is_other = [](const State::SignalThread& worker) { return !worker.over && !worker.thread.is_this(); };
  const auto others = [&]() REQUIRES(state_->mutex) { return std::ranges::any_of(state_->workers, is_other); };
  while ((others() || !state_->waiting.empty()) && BootClock::now() < until) {
    if (!state_->waiting.empty() && state_->idle == 0) state_->start_one();
    state_->ended.wait_until(guard, std::min(until, later(BootClock::now(), patience)));
  }
  for (auto& worker : state_->workers)
    if (is_other(worker)) worker.thread.let_be();
  state_->waiting.clear();
  std::erase_if(state_->workers, [](const State::SignalThread& worker) { return worker.over; });
}

}  // namespace dlock::engine
