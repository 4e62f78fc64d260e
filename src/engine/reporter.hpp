// Tells the observer what happened, and fires lost(): each on threads of its own, so that no callback holds anything
// up.
#pragma once

#include "engine/held.hpp"
#include "engine/loss_signals.hpp"
#include "types/thread.hpp"

#include <dlock/event.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace dlock::engine {

// Threads: any. Its thread starts with the first piece of news. Exceptions of the observer are swallowed.
class Reporter {
 public:
  // `farewell`: for so long at most its end waits for callbacks.
  explicit Reporter(std::function<void(const Event&)> observer, Duration farewell = std::chrono::seconds{5});
  // Delivers what is waiting, unless it runs within a callback. A callback that blocks beyond the farewell, or what
  // close() said, is left to itself, and no other begins.
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  // Says that the end is near, and by when it is to be over.
  void close(Instant until) noexcept;

  bool observed() const noexcept;

  // Queues an event. Where an observer blocks for long, the oldest passing events are dropped, a loss or an
  // abandoned lease not before the end.
  void tell(Event::Kind kind, const std::string& name, Token token = {}, Duration took = {},
            std::string text = {}) noexcept;

  // Fires the lock's lost(), and tells of the loss.
  void tell_loss(const std::shared_ptr<Held>& held, std::string_view text) noexcept;

  // See LossSignals.
  void on_delay(std::function<void()> call);
  Instant look_after() noexcept;

 private:
  struct State;
  void queue(Event::Kind kind, const std::string& name, Token token, Duration took, std::string text) noexcept;
  bool ensure_running() noexcept;
  const Duration farewell_;
  const std::shared_ptr<State> state_;
  LossSignals losses_;
  Thread thread_;  // started under the state's mutex
};

}  // namespace dlock::engine
