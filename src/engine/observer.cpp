// The queue between the engine and one observer: how many events wait in it, which are dropped then, and which never.
#include "engine/observer.hpp"

#include "types/worker.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <utility>

namespace dlock::engine {
namespace {

constexpr std::size_t most_waiting = 4096;

bool may_be_dropped(const QueuedEvent& event) {
  return event.kind != Event::Kind::lost && event.kind != Event::Kind::abandoned;
}

}  // namespace

struct Observer::State : Worker {
  explicit State(std::function<void(const Event&)> the_callback) : callback(std::move(the_callback)) {}
  std::function<void(const Event&)> callback;  // whoever calls it, or destroys it, is the only one
  std::deque<QueuedEvent> waiting GUARDED_BY(mutex);
  bool calling GUARDED_BY(mutex) = false, removed GUARDED_BY(mutex) = false;
  bool orphaned GUARDED_BY(mutex) = false;  // removed from within its call: its thread destroys it

  void deliver(const QueuedEvent& event) const noexcept {
    try {
      callback(Event{event.kind, event.name, event.text, event.token, event.took, event.label, event.node, event.job});
    } catch (...) {  // the observer's own affair: there is nobody here to tell
    }
  }

  void run() override {
    UniqueMutexLock guard(mutex);
    for (;;) {
      while (waiting.empty() && !closing && !removed) wait(guard);
      if (waiting.empty() || BootClock::now() >= ends_by) break;
      {
        const QueuedEvent event = std::move(waiting.front());
        waiting.pop_front();
        calling = true;
        guard.unlock();
        deliver(event);
      }
      guard.lock();
      calling = false;
      changed.notify_all();
    }
    // Whoever removed it from within the callback could not destroy that.
    std::function<void(const Event&)> last;
    if (orphaned) last.swap(callback);
    guard.unlock();
  }
};

Observer::Observer(std::function<void(const Event&)> callback) : state_(std::make_shared<State>(std::move(callback))) {}

Observer::~Observer() { state_->finish(); }

Observer::Pushed Observer::push(const QueuedEvent& event) noexcept {
  try {
    const MutexLock guard(state_->mutex);
    if (state_->closing || state_->removed) return {};
    Pushed pushed;
    auto& waiting = state_->waiting;
    if (waiting.size() >= most_waiting)
      if (const auto oldest = std::ranges::find_if(waiting, may_be_dropped); oldest != waiting.end()) {
        waiting.erase(oldest);
        pushed.dropped = true;
      }
    waiting.push_back(event);
    state_->changed.notify_all();
    pushed.delayed = !state_->try_start();
    return pushed;
  } catch (const std::exception&) { return {.dropped = true}; }
}

bool Observer::look_after() noexcept {
  const MutexLock guard(state_->mutex);
  return state_->waiting.empty() || state_->closing || state_->try_start();
}

bool Observer::remove() noexcept {
  std::function<void(const Event&)> last;  // destroyed after the mutex is free
  UniqueMutexLock guard(state_->mutex);
  state_->removed = true;
  state_->waiting.clear();
  state_->changed.notify_all();
  if (state_->calling && state_->is_here()) {
    state_->orphaned = true;
    return false;
  }
  while (state_->calling) state_->wait(guard);
  if (!state_->orphaned) last.swap(state_->callback);
  guard.unlock();
  return true;
}

void Observer::close() noexcept { state_->close(); }

void Observer::end(Instant until) noexcept {
  // Nobody is told anything when the engine has ended.
  state_->finish(state_->is_here() ? Instant::min() : until);
}

}  // namespace dlock::engine
