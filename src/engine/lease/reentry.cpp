// What it takes for a thread or a job to enter what it holds: no round trip while there is enough trust; that who holds
// it shared may not enter it to write; and that who waits enters what another thread of its job was granted meanwhile.
#include "engine/lease/reentry.hpp"

#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace dlock::engine {

std::shared_ptr<Lease> Reentry::reenter(const Name& name, const LockOptions& options, Instant deadline) {
  auto held = context_.entries.enter(Entrant(options.job.name()), name.text());
  if (!held) return nullptr;
  if (held->mode() != options.mode && options.mode == Mode::exclusive && held->valid(BootClock::now())) {
    releaser_.release(held, context_.options.timeouts.release);
    throw Error(
        Fault::misuse,
        fmt::format("{} is held in mode {} by who asks for it exclusively, and two who do so would wait for each "
                    "other for ever: release it first, or use Lock::try_upgrade",
                    in_quotes(name.text()), to_string(held->mode())));
  }
  try {
    if (refresh(held, options, std::min(context_.answer_by(deadline), context_.soon()))) return held;
  } catch (...) {
    // This entry; the outer one may have left meanwhile, on another thread.
    releaser_.release(held, context_.options.timeouts.release);
    throw;
  }
  context_.entries.close(held);
  releaser_.release(held, context_.options.timeouts.release);
  return nullptr;
}

int Reentry::hold_count(const Name& name) {
  return context_.entries.count(Entrant(Job::current().name()), name.text(), BootClock::now());
}

std::shared_ptr<Lease> Reentry::enter_by_job(GrantRequest& request, Instant deadline) {
  if (!request.by_job || planted("job_waits_for_itself")) return nullptr;
  auto held = reenter(request.name, request.options, deadline);
  request.entered = held != nullptr;
  return held;
}

// Sees to it that there is trust for the work of a further entry: by the renewer at least half of it, without one all.
// False: the lease is lost.
bool Reentry::refresh(const std::shared_ptr<Lease>& held, const LockOptions& options, Instant deadline) {
  const auto now = BootClock::now();
  if (!held->valid(now)) {
    if (held->lose(Loss::unconfirmed)) context_.events->emit_loss(held, "trust ran out before a renewal was confirmed");
    return false;
  }
  const auto terms = held->terms();
  const auto wanted = std::max<Duration>(terms.asked(), options.lease.value_or(terms.asked()));
  const bool kept = held->renewable() && wanted == terms.asked();
  if (kept && held->remaining(now) >= (terms.lease - terms.margin) / 2) return true;
  // Never beyond the grant's max_hold; a millisecond for the way to the question.
  const auto room = held->room(now);
  const auto lease = std::min(wanted, room);
  if (lease <= held->remaining(now)) return true;  // it has the longest it can have
  try {
    changes_.extend(held, {lease}, deadline);
  } catch (const Error& error) {
    if (error.fault() == Fault::lost) return false;
    // The renewer asks on; or max_hold has come too near.
    if ((kept || error.fault() == Fault::misuse) && held->valid(BootClock::now())) return true;
    throw;
  }
  return true;
}

}  // namespace dlock::engine
