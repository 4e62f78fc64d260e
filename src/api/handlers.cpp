// How the handlers of asynchronous calls are run one after another.
#include "api/handlers.hpp"

#include "types/mutant.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace dlock::api {

namespace {

// At the end handlers that are posted last get at least so long.
constexpr Duration shortest_farewell = std::chrono::milliseconds{100};

}  // namespace

void Handlers::prepare() {
  const MutexLock guard(mutex);
  if (!executor_ && !closing) start();
}

void Handlers::post(std::function<void()> handler) {
  if (executor_) return hand_on(std::move(handler));
  const MutexLock guard(mutex);
  if (closing && !running) return;  // its thread has gone, and so may have what the handler uses
  posted_.push_back(std::move(handler));
  changed.notify_all();
}

void Handlers::hand_on(std::function<void()> handler) noexcept {
  {
    const MutexLock guard(mutex);
    if (closing && !planted("executor_called_late")) return;  // what the executor uses may be gone
    ++handed_on_;
  }
  const auto* const outer = std::exchange(hands_on_, this);
  try {
    executor_(std::move(handler));
  } catch (...) {  // the program's executor takes nothing: the answer is lost
  }
  hands_on_ = outer;
  const MutexLock guard(mutex);
  --handed_on_;
  changed.notify_all();
}

void Handlers::finish_soon(Instant until) noexcept {
  const auto end = std::max(until, later(BootClock::now(), shortest_farewell));
  finish(end);
  if (forked()) return;
  UniqueMutexLock guard(mutex);
  const int own = hands_on_ == this ? 1 : 0;  // whoever is called by the executor at once may end the engine
  while (handed_on_ > own && BootClock::now() < end) wait(guard, end);
}

// What the program's handlers use may be gone with the engine.
bool Handlers::is_too_late() const {
  return closing && BootClock::now() >= ends_by && !planted("handlers_begin_for_ever");
}

void Handlers::run() {
  std::list<std::function<void()>> dropped;  // goes after the mutex is free; takes no memory, unlike a deque
  UniqueMutexLock guard(mutex);
  for (;;) {
    while (posted_.empty() && !closing) wait(guard);
    if (posted_.empty() || is_too_late()) break;
    auto handler = std::move(posted_.front());
    posted_.pop_front();
    guard.unlock();
    try {
      handler();
    } catch (...) {  // it is the program's: never the end of a thread of the engine
    }
    handler = nullptr;
    guard.lock();
  }
  running = false;  // what is posted from now on is run by who posts it
  dropped.swap(posted_);
  guard.unlock();
}

}  // namespace dlock::api
