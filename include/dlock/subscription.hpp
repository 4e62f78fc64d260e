// Keeps an observer subscribed to an engine's events: Engine::observe.
#pragma once

#include <dlock/export.hpp>

#include <memory>

namespace dlock {
inline namespace v0 {

// An observer's place with its engine, for as long as it exists.
// Threads: unsubscribe and the destructor from any, one at a time. May outlive its engine, and keeps nothing of it
// alive: the observer is told no more then.
// Owns: the observer, which is destroyed when it is unsubscribed.
// Fails: never. In a process made by fork() it does nothing.
class [[nodiscard]] DLOCK_EXPORT Subscription {
 public:
  struct Handle;

  Subscription() noexcept;                                         // of nothing
  explicit Subscription(std::unique_ptr<Handle> handle) noexcept;  // the engine's
  Subscription(Subscription&&) noexcept;
  Subscription& operator=(Subscription&&) noexcept;  // unsubscribes what it had
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;
  ~Subscription();

  // Ends it: no call of the observer begins from now on, and events that wait for it are dropped. Returns when a call
  // under way has ended, however long that takes, unless it comes from within that call: then the observer is destroyed
  // when the call returns. So whoever unsubscribes must not hold what the observer waits for, and two observers must
  // not unsubscribe each other at the same time. A second call, and the destructor, do nothing more, but wait likewise.
  void unsubscribe() noexcept;

 private:
  std::unique_ptr<Handle> handle_;
};

}  // namespace v0
}  // namespace dlock
