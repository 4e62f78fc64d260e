// Fires lost() and asked() of leases on threads of their own: one, and one more for each callback that blocks.
#pragma once

#include "engine/lease/lease.hpp"

#include <functional>
#include <memory>

namespace dlock::engine {

// Threads: any. Owns: its threads, which start with the first signal that somebody listens for and end a little after
// the last. Signals begin in the order in which they are told; no callback holds up those of another signal.
class LossSignals {
 public:
  LossSignals();
  ~LossSignals();
  LossSignals(const LossSignals&) = delete;
  LossSignals& operator=(const LossSignals&) = delete;

  void fire(const std::shared_ptr<Lease>& held) noexcept;
  // The same for asked(), of a lease that says that it is to be signalled.
  void fire_asked(const std::shared_ptr<Lease>& held) noexcept;

  // Called by either, on its thread, when a signal has nobody to run its callbacks. It is to see to it that
  // look_after() is called soon. Set before use.
  void on_delay(std::function<void()> call);
  // Starts threads for signals that wait, and tries again what could not be started. Answers when it is to be called
  // again.
  Instant look_after() noexcept;

  // Waits for what was told, unless a callback of it calls this; what blocks beyond `until` is left to itself.
  void close(Instant until) noexcept;

 private:
  void queue(const std::shared_ptr<Lease>& held, void (Lease::*signal)() noexcept);
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace dlock::engine
