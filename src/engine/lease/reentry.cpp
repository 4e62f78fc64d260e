// What it takes for a thread or a job to enter what it holds: no round trip while there is enough trust.
#include "engine/core.hpp"
#include "engine/request.hpp"
#include "types/mutant.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace dlock {
inline namespace v0 {

using engine::Lease;

// Empty: there is nothing to enter, or it was lost; then a new grant is to be asked for.
std::shared_ptr<Lease> Core::reenter(const Name& name, const LockOptions& options, Instant deadline) {
  auto held = entries_.enter(engine::Entrant(options.job.name()), name.text());
  if (!held) return nullptr;
  if (held->mode() != options.mode && options.mode == Mode::exclusive && held->valid(BootClock::now())) {
    release(held, options_.timeouts.release);
    throw Error(
        Fault::misuse,
        fmt::format("{} is held in mode {} by who asks for it exclusively, and two who do so would wait for each "
                    "other for ever: release it first, or use Lock::try_upgrade",
                    in_quotes(name.text()), to_string(held->mode())));
  }
  try {
    if (refresh(held, options, std::min(answer_by(deadline), soon()))) return held;
  } catch (...) {
    release(held, options_.timeouts.release);  // this entry; the outer one may have left meanwhile, on another thread
    throw;
  }
  entries_.close(held);
  release(held, options_.timeouts.release);
  return nullptr;
}

int Core::hold_count(const Name& name) {
  return entries_.count(engine::Entrant(Job::current().name()), name.text(), BootClock::now());
}

// A grant was made to this thread or its job: threads of that job that wait for the name may enter it.
void Core::open_to_job(const std::shared_ptr<Lease>& held) {
  entries_.open(held);
  if (const auto job = held->said().job; !job.empty()) queues_->wake_job(held->name(), job);
}

// What another thread of the job was granted since the request was made. Empty: nothing.
std::shared_ptr<Lease> Core::enter_by_job(Request& request, Instant deadline) {
  if (!request.by_job || planted("job_waits_for_itself")) return nullptr;
  auto held = reenter(request.name, request.options, deadline);
  request.entered = held != nullptr;
  return held;
}

// Sees to it that there is trust for the work of a further entry: by the renewer at least half of it, without one all.
// False: the lease is lost.
bool Core::refresh(const std::shared_ptr<Lease>& held, const LockOptions& options, Instant deadline) {
  const auto now = BootClock::now();
  if (!held->valid(now)) {
    if (held->lose(Loss::unconfirmed)) events_->emit_loss(held, "trust ran out before a renewal was confirmed");
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
    extend(held, {lease}, deadline);
  } catch (const Error& error) {
    if (error.fault() == Fault::lost) return false;
    // The renewer asks on; or max_hold has come too near.
    if ((kept || error.fault() == Fault::misuse) && held->valid(BootClock::now())) return true;
    throw;
  }
  return true;
}

}  // namespace v0
}  // namespace dlock
