// Tells of a loss when trust has ended, by a timer that counts suspend and does not depend on any connection. Until
// when there is trust: trust.hpp, lease.cpp.
#pragma once

#include "engine/event_queue.hpp"
#include "engine/lease/lease.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace dlock::engine {

// Threads: any. Its thread starts with the first grant, or before it, and looks after the event queue's threads as
// well.
class TrustTimer {
 public:
  explicit TrustTimer(std::shared_ptr<EventQueue> events);
  ~TrustTimer();
  TrustTimer(const TrustTimer&) = delete;
  TrustTimer& operator=(const TrustTimer&) = delete;

  // Throws std::system_error where the system has no thread to give.
  void start();

  // Watches a grant, or looks at it again after its length was changed.
  void watch(const std::shared_ptr<Lease>& held);
  void forget(const std::shared_ptr<Lease>& held);
  // All that is watched: each grant from its beginning until it is forgotten, or its trust has run out.
  std::vector<std::shared_ptr<Lease>> watched() const;
  // Whether one of them is so. `is` must not block, nor call anything here.
  bool any(const std::function<bool(const Lease&)>& is) const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace dlock::engine
