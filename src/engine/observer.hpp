// Calls one observer for one event after another, on a thread of its own.
#pragma once

#include "types/clock.hpp"

#include <dlock/event.hpp>

#include <functional>
#include <memory>
#include <string>

namespace dlock::engine {

// An event on its way, with words of its own.
struct QueuedEvent {
  Event::Kind kind{};
  std::string name;
  Token token{};
  Duration took{};
  std::string text;
  std::string label, node, job;
};

// Threads: any. Its thread starts with the first event. Exceptions of the callback are swallowed.
class Observer {
 public:
  explicit Observer(std::function<void(const Event&)> callback);
  ~Observer();  // nobody calls into it any more; after close() and end(), or remove()
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  struct Pushed {
    bool dropped = false;  // an older event was dropped for it, or there was no memory to tell it
    bool delayed = false;  // the system has no thread to give: look_after() tries again
  };
  // Where the callback blocks for long, the oldest passing events are dropped; a loss or an abandoned lease is not.
  Pushed push(const QueuedEvent& event) noexcept;
  // Starts the thread where it could not be started when it was needed. False: the system still has none to give.
  bool look_after() noexcept;

  // The end of the subscription: the callback is called no more, and destroyed. Returns when no call of it is under
  // way, unless it comes from within one: that is answered by false, and whoever calls it again waits.
  bool remove() noexcept;

  // The end of the engine, in two steps, so that all observers end at the same time: what waits is delivered, unless
  // this comes from within the callback, until `until`; a callback that blocks beyond it is left to itself, and no
  // other begins.
  void close() noexcept;
  void end(Instant until) noexcept;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace dlock::engine
