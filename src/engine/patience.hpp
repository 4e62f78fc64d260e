// How long a call may look for a grant.
#pragma once

#include "types/clock.hpp"

#include <stop_token>

namespace dlock::engine {

// Threads: as a value.
struct Patience {
  Instant deadline = Instant::max();
  std::stop_token stop{};
  bool waits = false;  // false: one answer is enough

  // Whether there is any left to wait with.
  bool lasts() const { return waits && !stop.stop_requested() && BootClock::now() < deadline; }
};

}  // namespace dlock::engine
