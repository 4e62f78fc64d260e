// This file knows when trust ends, by a timer that counts suspend and does not depend on any connection.
#pragma once

#include "engine/held.hpp"
#include "engine/reporter.hpp"
#include "types/thread.hpp"

#include <memory>

namespace dlock::engine {

// Threads: any. Its thread starts with the first grant.
class TrustTimer {
 public:
  explicit TrustTimer(std::shared_ptr<Reporter> reporter);
  ~TrustTimer();
  TrustTimer(const TrustTimer&) = delete;
  TrustTimer& operator=(const TrustTimer&) = delete;

  // Watches a grant, or looks at it again after its length was changed.
  void watch(const std::shared_ptr<Held>& held);
  void forget(const std::shared_ptr<Held>& held);

 private:
  struct State;
  std::shared_ptr<State> state_;
  Thread thread_;
};

}  // namespace dlock::engine
