// How what may be held by nobody is freed.
#include "engine/lease/leftovers.hpp"

namespace dlock::engine {

void free_leftover(store::LockTable& table, const Leftover& leftover, const std::function<Instant()>& until) {
  if (leftover.mode != Mode::exclusive) {
    table.withdraw(leftover.name, leftover.owner, until(), leftover.mode, leftover.kept);
  } else if (!leftover.freed) {
    table.withdraw(leftover.name, leftover.owner, until(), leftover.mode);
  } else if (const auto availability = table.look(leftover.name, 0, until());
             availability.owner == leftover.owner && availability.token != leftover.kept) {
    const store::LeaseKey key{leftover.name, leftover.owner, availability.token};
    table.release(key, until());
  }
}

}  // namespace dlock::engine
