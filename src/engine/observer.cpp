// The queue between the engine and one observer.
#include "engine/observer.hpp"

#include "types/annotated_mutex.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <thread>
#include <utility>

namespace dlock::engine {
namespace {

constexpr std::size_t most_waiting = 4096;

bool may_be_dropped(const QueuedEvent& event) {
  return event.kind != Event::Kind::lost && event.kind != Event::Kind::abandoned;
}

}  // namespace

struct Observer::State {
  explicit State(std::function<void(const Event&)> the_callback) : callback(std::move(the_callback)) {}
  std::function<void(const Event&)> callback;  // whoever calls it, or destroys it, is the only one
  AnnotatedMutex mutex;
  std::condition_variable changed, ended, returned;
  std::deque<QueuedEvent> waiting GUARDED_BY(mutex);
  bool closing GUARDED_BY(mutex) = false, removed GUARDED_BY(mutex) = false, over GUARDED_BY(mutex) = false;
  bool orphaned GUARDED_BY(mutex) = false;      // removed from within its call: its thread destroys it
  std::thread::id calling GUARDED_BY(mutex){};  // the thread that is in the callback; none: nobody is

  bool called_from_here() const noexcept REQUIRES(mutex) { return calling == std::this_thread::get_id(); }

  void deliver(const QueuedEvent& event) const noexcept {
    try {
      callback(Event{event.kind, event.name, event.text, event.token, event.took, event.label, event.node, event.job});
    } catch (...) {  // the observer's own affair: there is nobody here to tell
    }
  }

  void run() {
    UniqueMutexLock guard(mutex);
    for (;;) {
      changed.wait(guard, [&]() REQUIRES(mutex) { return closing || removed || !waiting.empty(); });
      if (waiting.empty()) break;
      {
        const QueuedEvent event = std::move(waiting.front());
        waiting.pop_front();
        calling = std::this_thread::get_id();
        guard.unlock();
        deliver(event);
      }
      guard.lock();
      calling = {};
      returned.notify_all();
    }
    over = true;
    ended.notify_all();
    // Whoever removed it from within the callback could not destroy that.
    std::function<void(const Event&)> last;
    if (orphaned) last.swap(callback);
    guard.unlock();
  }
};

Observer::Observer(std::function<void(const Event&)> callback) : state_(std::make_shared<State>(std::move(callback))) {}

Observer::~Observer() = default;

// False: the system has no thread to give.
bool Observer::ensure_running() noexcept REQUIRES(state_->mutex) {
  if (thread_.started() || state_->over) return true;
  try {
    thread_.start([state = state_] { state->run(); });
  } catch (const std::exception&) { return false; }
  return true;
}

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
    state_->changed.notify_one();
    pushed.delayed = !ensure_running();
    return pushed;
  } catch (const std::exception&) { return {.dropped = true}; }
}

bool Observer::look_after() noexcept {
  const MutexLock guard(state_->mutex);
  return state_->waiting.empty() || state_->closing || ensure_running();
}

bool Observer::remove() noexcept {
  std::function<void(const Event&)> last;  // destroyed after the mutex is free
  UniqueMutexLock guard(state_->mutex);
  state_->removed = true;
  state_->waiting.clear();
  state_->changed.notify_all();
  if (state_->called_from_here()) {
    state_->orphaned = true;
    return false;
  }
  state_->returned.wait(guard, [&]() REQUIRES(state_->mutex) { return state_->calling == std::thread::id{}; });
  if (!state_->orphaned) last.swap(state_->callback);
  guard.unlock();
  return true;
}

void Observer::close() noexcept {
  const MutexLock guard(state_->mutex);
  state_->closing = true;
  state_->changed.notify_all();
}

void Observer::end(Instant until) noexcept {
  UniqueMutexLock guard(state_->mutex);
  if (state_->called_from_here()) state_->waiting.clear();  // nobody is told anything when the engine has ended
  if (!thread_.started() || state_->called_from_here()) return;
  if (state_->ended.wait_until(guard, until, [&]() REQUIRES(state_->mutex) { return state_->over; })) return;
  state_->waiting.clear();
  thread_.let_be();
}

}  // namespace dlock::engine
