// Sees to it that what takes effect late, when nobody waits for it any more, holds nothing up.
#include "engine/lease/late_attempts.hpp"

#include "types/mutant.hpp"

#include <exception>

namespace dlock::engine {

void LateAttempts::free_later(const GrantRequest& request) {
  context_.renewer.free_later(
      {request.name.text(), request.owner.text(), {}, false, request.terms.lease, request.mode});
}

bool LateAttempts::free_late_grant(const Name& name, const Deadline& deadline) {
  if (!context_.renewer.has_leftovers(name.text())) return false;
  const auto availability =
      context_.retry(deadline, [&](Deadline until) { return context_.table->look(name.text(), 0, until); });
  return free_late_grant(name, availability, deadline);
}

bool LateAttempts::free_late_grant(const Name& name, const store::Availability& availability,
                                   const Deadline& deadline) {
  if (availability.owner.empty()) return false;
  const auto leftover = context_.renewer.leftover(name.text(), availability.owner, availability.token);
  if (!leftover) return false;
  context_.retry(deadline, [&](Deadline until) {
    const store::LeaseKey key{name.text(), availability.owner, availability.token};
    if (leftover->closed != Token{} && !planted("late_grant_stays_closed"))
      context_.table->extend({name.text(), availability.owner, leftover->closed}, Duration{1}, store::reopens, until);
    return context_.table->release(key, until);
  });
  return true;
}

void LateAttempts::expect(const Lease& held) {
  if (held.unanswered)
    context_.renewer.free_later({held.name(), held.owner(), held.row_token(), true, held.longest(), held.mode()});
}

void LateAttempts::bar(const Lease& held, const Deadline& deadline) noexcept {
  if (!held.unanswered || held.mode() == Mode::exclusive || planted("late_holder_let_in")) return;
  try {
    context_.table->withdraw(held.name(), held.owner(), deadline, held.mode());
  } catch (const std::exception&) {  // the renewer sees to it
  }
}

void LateAttempts::disown(const Lease& held, const std::string& heir) {
  context_.renewer.free_later({held.name(), held.owner(), {}, false, held.longest()});
  context_.renewer.free_later({held.name(), heir, {}, false, held.longest()});
}

}  // namespace dlock::engine
