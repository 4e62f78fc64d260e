// How what may be held by nobody is freed.
#include "engine/lease/leftovers.hpp"

namespace dlock::engine {

bool free_leftover(store::LockTable& table, const Leftover& leftover, const std::function<Instant()>& until) {
  if (!leftover.freed && leftover.closed != Token{})
    table.extend({leftover.name, leftover.owner, leftover.closed}, Duration{1}, store::reopens, until());
  if (leftover.mode != Mode::exclusive) {
    table.withdraw(leftover.name, leftover.owner, until(), leftover.mode, leftover.kept);
    return !leftover.freed;
  }
  if (!leftover.freed) {
    table.withdraw(leftover.name, leftover.owner, until(), leftover.mode);
    return true;
  }
  if (const auto availability = table.look(leftover.name, 0, until());
      availability.owner == leftover.owner && availability.token != leftover.kept) {
    const store::LeaseKey key{leftover.name, leftover.owner, availability.token};
    return table.release(key, until());
  }
  return false;
}

}  // namespace dlock::engine
