// This file knows how news leave the engine: on a thread of their own, so that no callback can hold anything up.
#pragma once

#include "engine/held.hpp"
#include "types/thread.hpp"

#include <dlock/event.hpp>

#include <functional>
#include <memory>
#include <string>

namespace dlock::engine {

// Threads: any. Its thread starts with the first piece of news. Exceptions of the observer are swallowed.
class Reporter {
 public:
  explicit Reporter(std::function<void(const Event&)> observer);
  ~Reporter();  // delivers what is waiting, unless it runs on the reporter's own thread
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  bool observed() const noexcept;

  // Queues an event. Where an observer blocks for long, the oldest passing events are dropped, a loss or an
  // abandoned lease never.
  void tell(Event::Kind kind, const std::string& name, Token token = {}, Duration took = {}, std::string text = {});

  // Tells of a loss, and fires the lock's lost().
  void tell_loss(std::shared_ptr<Held> held, std::string text);

 private:
  struct State;
  void wake();
  std::shared_ptr<State> state_;
  Thread thread_;
};

}  // namespace dlock::engine
