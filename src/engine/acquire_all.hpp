// An acquire of several names.
#pragma once

#include "engine/acquiring.hpp"
#include "engine/lease/lease_changes.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace dlock::engine {

struct AcquiredAll {
  std::vector<std::shared_ptr<Lease>> leases{};  // in the order of the names
  std::size_t in_the_way = 0;                    // if there are none: the name that was not to be had
  bool row_locked = false;                       // as in Acquired, of that one
};

// All of the names, which are in order and none of them twice; or none. Who waits holds none of them meanwhile.
// Threads: the calling one. Fails: Error, and then none is held.
AcquiredAll acquire_all(Acquirer& acquirer, LeaseChanges& changes, std::span<const Name> names,
                        const LockOptions& given, const Patience& patience);

}  // namespace dlock::engine
