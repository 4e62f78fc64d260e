// In which order an acquire looks for a grant: what it may enter, what lingers here, an attempt, the line; and how its
// end is told: also when a last look without an answer is a refusal, and when a locked row is looked into.
#include "engine/acquiring.hpp"

#include "engine/faults.hpp"
#include "engine/on_behalf.hpp"
#include "engine/wait/queued_acquire.hpp"
#include "types/mutant.hpp"

#include <algorithm>

namespace dlock::engine {
namespace {

// It was not to be had a moment ago: that the last look was not answered in time changes nothing. Throws anything else.
void overlook(GrantRequest& request, const Patience& patience, const std::exception_ptr& broken) {
  try {
    std::rethrow_exception(broken);
  } catch (const Error& error) {
    const auto now = BootClock::now();
    if (now < patience.deadline || !request.was_refused(now) || !is_transient(error.fault())) throw;
  }
  request.row_locked = request.refused_locked;
  request.silent = true;
}

}  // namespace

Acquired Acquirer::acquire(const Name& name, const LockOptions& given, const Patience& patience) {
  auto& context = parts.context;
  const OnBehalf behalf(given);
  const auto& options = behalf.options();
  const auto reentrance = context.policy.reentrance_of(options);
  if (patience.stop.stop_requested()) return {};
  if (reentrance == Reentrance::thread)
    if (auto held = parts.reentry.reenter(name, options, patience.deadline)) return {std::move(held), false, true};
  context.ensure_running();
  if (auto held = take_lingering(name, options, reentrance, patience)) return {std::move(held)};
  GrantRequest request(context, name, options, reentrance);
  std::shared_ptr<Lease> held;
  std::exception_ptr broken;
  try {
    // Who is in line in this process comes first, but for those who do not wait, or whose node is in.
    if (!patience.waits || !context.queues->is_next_in_line(name.text()) || request.enters_by_node(context))
      held = parts.attempts.try_first(request, patience);
    if (!held) held = parts.reentry.enter_by_job(request, patience.deadline);
    if (!held && patience.lasts()) held = QueuedAcquire(parts, request, patience).wait();
  } catch (const Error&) { broken = std::current_exception(); } catch (...) {  // out of memory
    if (request.in_doubt || request.unanswered) parts.late_attempts.free_later(request);
    throw;
  }
  held = told(request, patience, std::move(held), broken);
  if (held && reentrance == Reentrance::thread && !request.entered) context.open_to_job(held);
  return {std::move(held), request.found_locked, request.entered};
}

// What lingers here is granted before anything else is thought of; not to who would pass others in line.
std::shared_ptr<Lease> Acquirer::take_lingering(const Name& name, const LockOptions& options, Reentrance reentrance,
                                                const Patience& patience) {
  auto& context = parts.context;
  if (!parts.lingering.enabled() || reentrance == Reentrance::node || options.mode != Mode::exclusive ||
      (patience.waits && context.queues->anybody(name.text())))
    return nullptr;
  const bool threads = reentrance == Reentrance::thread;
  const auto job = threads && !options.job ? job_of_this_thread() : JobRef{};
  const Deadline until(std::min(context.answer_by(patience.deadline), context.soon()), patience.stop);
  auto held = parts.lingering.take(name, &options, context.policy.terms_of(options), job, BootClock::now(), until);
  if (held && threads) context.open_to_job(held);
  return held;
}

// Tells why there is no grant, if there is none and nobody has asked to stop.
std::shared_ptr<Lease> Acquirer::told(GrantRequest& request, const Patience& patience, std::shared_ptr<Lease> held,
                                      const std::exception_ptr& broken) {
  try {
    held = concluded(request, patience, std::move(held), broken);
    if (!held && !patience.stop.stop_requested())
      parts.context.tell_end(request.name, request.called, patience.waits, Context::said_by(request.options));
    return held;
  } catch (const Error& error) {
    tell_deadlock(request, error);
    throw;
  }
}

std::shared_ptr<Lease> Acquirer::concluded(GrantRequest& request, const Patience& patience, std::shared_ptr<Lease> held,
                                           const std::exception_ptr& broken) {
  std::shared_ptr<Lease> entered;
  try {
    if (broken) overlook(request, patience, broken);
    if (!held && request.row_locked && !patience.stop.stop_requested())
      held = parts.attempts.look_into_lock(request, patience);
    entered = request.entered ? held : nullptr;
    if (held && !entered) return held;
  } catch (const Error&) {
    // Whatever an attempt without an answer may have been granted must not be held by nobody.
    if ((request.in_doubt || request.unanswered) && !planted("doubt_not_given_back"))
      parts.late_attempts.free_later(request);
    if (patience.stop.stop_requested()) return nullptr;
    throw;
  }
  if (request.in_doubt || request.unanswered) parts.late_attempts.free_later(request);
  return entered;
}

void Acquirer::tell_deadlock(const GrantRequest& request, const Error& error) {
  if (error.fault() == Fault::deadlock)
    parts.context.events->emit(Event::Kind::deadlock, request.name.text(), {},
                               std::chrono::floor<Duration>(BootClock::now() - request.called), error.what(),
                               Context::said_by(request.options));
}

}  // namespace dlock::engine
