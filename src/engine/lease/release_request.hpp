// What belongs to one lease while it is given back.
#pragma once

#include "engine/faults.hpp"
#include "engine/lease/lease.hpp"

#include <memory>

namespace dlock::engine {

// Threads: one at a time.
struct ReleaseRequest {
  std::shared_ptr<Lease> held;
  bool was_lost = false;  // before it was let go of
  Doubt unanswered{};     // an attempt to free it may have done so, or may do it yet
  Instant deadline{};
  Instant trusted_until{};  // when it was left, for who may wait until its row is freed
  bool yields = false;      // it has gone round in this process for long enough: others are to have their turn
  std::shared_ptr<Lease> unclaimed{};  // the next grant, where who waited for it has given up: it is to be released
};

}  // namespace dlock::engine
