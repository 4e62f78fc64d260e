// Sees to it that what takes effect late, when nobody waits for it any more, holds nothing up.
#include "engine/core.hpp"
#include "engine/faults.hpp"
#include "engine/request.hpp"
#include "engine/retry.hpp"
#include "types/mutant.hpp"

#include <exception>

namespace dlock {
inline namespace v0 {

using engine::Lease;

void Core::free_later(const Request& request) {
  renewer_.free_later({request.name.text(), request.owner.text(), {}, false, request.terms.lease, request.mode});
}

// Frees what a late attempt of this engine holds: its grant is nobody's. False: it is somebody's, or free.
bool Core::free_late_grant(const Name& name, const Deadline& deadline) {
  if (!renewer_.has_leftovers(name.text())) return false;
  const auto availability = retry(deadline, [&](Deadline until) { return table_->look(name.text(), 0, until); });
  return free_late_grant(name, availability, deadline);
}

bool Core::free_late_grant(const Name& name, const store::Availability& availability, const Deadline& deadline) {
  if (availability.owner.empty()) return false;
  const auto leftover = renewer_.leftover(name.text(), availability.owner, availability.token);
  if (!leftover) return false;
  retry(deadline, [&](Deadline until) {
    const store::LeaseKey key{name.text(), availability.owner, availability.token};
    return table_->release(key, until);
  });
  return true;
}

// An attempt at it that got no answer may be granted the name once more, when it is somebody else's turn.
void Core::expect_late_attempts(const Lease& held) {
  if (held.unanswered)
    renewer_.free_later({held.name(), held.owner(), held.row_token(), true, held.longest(), held.mode()});
}

// Of an exclusive grant the row itself remembers who gave it back. Where others hold the name beside it, that has to be
// said.
void Core::bar_late_attempts(const Lease& held, const Deadline& deadline) noexcept {
  if (!held.unanswered || held.mode() == Mode::exclusive || planted("late_holder_let_in")) return;
  try {
    table_->withdraw(held.name(), held.owner(), deadline, held.mode());
  } catch (const std::exception&) {  // the renewer sees to it
  }
}

// A hand-over to somebody who has given up may still take effect. Once the row is free of its first holder it cannot;
// then the heir's name is taken out of it.
void Core::disown(const Lease& held, const std::string& heir) {
  renewer_.free_later({held.name(), held.owner(), {}, false, held.longest()});
  renewer_.free_later({held.name(), heir, {}, false, held.longest()});
}

}  // namespace v0
}  // namespace dlock
