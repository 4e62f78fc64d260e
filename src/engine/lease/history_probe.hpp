// Whether a history of the locks is kept, in which each grant has to be found.
#pragma once

#include "engine/context.hpp"
#include "types/clock.hpp"

#include <atomic>

namespace dlock::engine {

// Threads: any.
class HistoryProbe {
 public:
  explicit HistoryProbe(Context& context) noexcept : context_(context) {}

  // Asked once in a while: it may be made while this runs. Where nobody answers, or there is little time, as if there
  // were one.
  bool keeps(Instant deadline);

 private:
  Context& context_;
  std::atomic<BootClock::rep> asked_{0};
  std::atomic<bool> kept_{true};
};

}  // namespace dlock::engine
