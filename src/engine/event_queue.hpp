// Tells observers what happened, counts it, and fires lost(): each on threads of its own, so that no callback holds
// anything up.
#pragma once

#include "engine/counters.hpp"
#include "engine/lease/lease.hpp"
#include "engine/lease/loss_signals.hpp"
#include "engine/observer.hpp"

#include <dlock/event.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace dlock::engine {

// What all events of an engine say of themselves, where nothing else is said.
struct Origin {
  std::string label{}, node{};
};

// Threads: any. Exceptions of observers are swallowed. What happens is counted whether or not anybody observes.
class EventQueue {
  struct State;

 public:
  // `farewell`: for so long at most its end waits for callbacks. `observer` may be empty.
  explicit EventQueue(std::function<void(const Event&)> observer, Duration farewell = std::chrono::seconds{5},
                      Origin origin = {});
  // Delivers what is waiting, unless it runs within a callback. A callback that blocks beyond the farewell, or what
  // close() said, is left to itself, and no other begins.
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // Says that the end is near, and by when it is to be over.
  void close(Instant until) noexcept;

  // One more observer, until this ends, which may be after the queue: see Subscription::unsubscribe.
  class Registration {
   public:
    Registration(std::shared_ptr<State> state, std::shared_ptr<Observer> observer) noexcept
        : state_(std::move(state)), observer_(std::move(observer)) {}
    ~Registration();
    // See Observer::remove.
    bool end() noexcept;
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

   private:
    const std::shared_ptr<State> state_;
    const std::shared_ptr<Observer> observer_;
  };
  std::unique_ptr<Registration> observe(std::function<void(const Event&)> observer);

  bool observed() const noexcept;

  Counters& counters() noexcept { return counters_; }
  const Counters& counters() const noexcept { return counters_; }

  // Queues an event, where somebody observes. `said`: by whoever has, or wanted, the lock.
  void emit(Event::Kind kind, const std::string& name, Token token = {}, Duration took = {}, std::string text = {},
            const Said& said = {}) noexcept;
  void emit(Event::Kind kind, const Lease& held, Duration took = {}, std::string text = {}) noexcept {
    emit(kind, held.name(), held.token(), took, std::move(text), held.said());
  }
  // Of something that is asked again, after a failure. `what` that is, if it is worth saying.
  void emit_retry(const std::exception& failure, std::string_view what = {}) noexcept;

  // Fires the lock's lost(), and tells of the loss.
  void emit_loss(const std::shared_ptr<Lease>& held, std::string_view text) noexcept;
  // Fires the lock's lost(), of a lease that was taken from its holder without being lost.
  void signal_end(const std::shared_ptr<Lease>& held) noexcept { losses_.fire(held); }
  // Somebody is seen to wait for its name: signals asked(), if that has not been done.
  void ask(const std::shared_ptr<Lease>& held) noexcept;

  // See LossSignals.
  void on_delay(std::function<void()> call);
  Instant look_after() noexcept;

 private:
  void queue(const QueuedEvent& event) noexcept;
  const Duration farewell_;
  const Origin origin_;
  const std::shared_ptr<State> state_;
  Counters counters_;
  LossSignals losses_;
  LossSignals hints_;  // on threads of their own: a callback of asked() holds up no lost()
};

}  // namespace dlock::engine
