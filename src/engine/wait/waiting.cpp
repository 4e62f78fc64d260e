// Looks for a grant, waits for it in line if that is wished, and tells how that ended.
#include "engine/core.hpp"
#include "engine/faults.hpp"
#include "engine/request.hpp"
#include "engine/wait/queued_acquire.hpp"
#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <exception>

namespace dlock {
inline namespace v0 {

using engine::Lease;

// Empty: busy, or out of patience.
std::shared_ptr<Lease> Core::wait_for_grant(Request& request, const Patience& patience) {
  std::shared_ptr<Lease> held;
  std::exception_ptr broken;
  try {
    // Who is in line in this process comes first, but for those who do not wait.
    if (!patience.waits || !queues_->anybody(request.name.text())) held = try_first(request, patience);
    if (!held) held = enter_by_job(request, patience.deadline);
    if (!held && patience.lasts()) held = QueuedAcquire(*this, request, patience).wait();
  } catch (const Error&) { broken = std::current_exception(); }
  return told(request, patience, std::move(held), broken);
}

// What comes of a wish that was granted, or has run out of patience, or is broken.
std::shared_ptr<Lease> Core::concluded(Request& request, const Patience& patience, std::shared_ptr<Lease> held,
                                       const std::exception_ptr& broken) {
  std::shared_ptr<Lease> entered;
  try {
    if (broken) overlook(request, patience, broken);
    if (!held && request.row_locked && !patience.stop.stop_requested()) held = look_into_lock(request, patience);
    entered = request.entered ? held : nullptr;
    if (held && !entered) return held;
  } catch (const Error&) {
    // Whatever an attempt without an answer may have been granted must not be held by nobody.
    if ((request.in_doubt || request.unanswered) && !planted("doubt_not_given_back")) free_later(request);
    if (patience.stop.stop_requested()) return nullptr;
    throw;
  }
  if (request.in_doubt || request.unanswered) free_later(request);
  return entered;
}

// It was not to be had a moment ago: that the last look was not answered in time changes nothing. Throws anything else.
void Core::overlook(Request& request, const Patience& patience, const std::exception_ptr& broken) {
  try {
    std::rethrow_exception(broken);
  } catch (const Error& error) {
    const auto now = BootClock::now();
    if (now < patience.deadline || !request.was_refused(now) || !engine::is_transient(error.fault())) throw;
  }
  request.row_locked = request.refused_locked;
  request.silent = true;
}

}  // namespace v0
}  // namespace dlock
