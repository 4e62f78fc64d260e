// How what may be held by nobody is freed.
#include "engine/leftovers.hpp"

namespace dlock::engine {

void free_leftover(store::LockTable& table, const Leftover& leftover, const std::function<Instant()>& until) {
  if (!leftover.entry.empty()) {
    const bool nobodys = table.leave(leftover.name, leftover.entry, until()).owner.empty();
    if (nobodys && !leftover.freed) table.withdraw(leftover.name, leftover.owner, until());
  } else if (!leftover.freed) {
    table.withdraw(leftover.name, leftover.owner, until());
  } else if (const auto outlook = table.look(leftover.name, 0, until());
             outlook.owner == leftover.owner && outlook.token != leftover.kept) {
    const store::Claim claim{leftover.name, leftover.owner, outlook.token};
    table.release({&claim, 1}, until());
  }
}

}  // namespace dlock::engine
