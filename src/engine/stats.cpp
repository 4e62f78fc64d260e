// Counts and tells how acquires end, and puts together what the engine has counted.
#include "engine/core.hpp"
#include "engine/request.hpp"

#include <dlock/error.hpp>
#include <dlock/stats.hpp>

#include <fmt/format.h>

#include <utility>

namespace dlock {
inline namespace v0 {
namespace {

Duration since(Instant begun) { return std::chrono::floor<Duration>(BootClock::now() - begun); }

}  // namespace

using engine::Lease;

// A grant begins: it is kept, watched, counted and told of.
void Core::hold(const std::shared_ptr<Lease>& held, const engine::JobRef& job, Instant called) {
  const bool unnamed = held->passed.reserved > 0 || held->unnamed;
  held->taken_by(job, unnamed ? engine::JobRef{} : job);
  if (unnamed && job && !planted("passed_on_unnamed")) job->add({weak_from_this(), held});
  watch(held);
  const auto took = since(called);
  events_->counters().waited.add(took);
  if (!events_->observed()) return;
  // There has to be time to be granted it, and to be answered a renewal.
  const auto terms = held->terms();
  const auto trip = table_->round_trip();
  if (held->renewable() && terms.lease - terms.margin <= 2 * trip + terms.asked() / 8)
    events_->emit(
        Event::Kind::trust_low, *held, held->remaining(BootClock::now()),
        fmt::format("a lease of {} us is too short to be renewed where a round trip to the database takes {} us; "
                    "choose a longer one",
                    terms.asked().count(), trip.count()));
  events_->emit(Event::Kind::granted, *held, took);
}

// Tells why there is no grant, if there is none and nobody has asked to stop.
std::shared_ptr<Lease> Core::told(Request& request, const Patience& patience, std::shared_ptr<Lease> held,
                                  const std::exception_ptr& broken) {
  try {
    held = concluded(request, patience, std::move(held), broken);
    if (!held && !patience.stop.stop_requested())
      tell_end(request.name, request.called, patience.waits, said_by(request.options));
    return held;
  } catch (const Error& error) {
    tell_deadlock(request, error);
    throw;
  }
}

void Core::tell_deadlock(const Request& request, const Error& error) {
  if (error.fault() == Fault::deadlock)
    events_->emit(Event::Kind::deadlock, request.name.text(), {}, since(request.called), error.what(),
                  said_by(request.options));
}

// Of a call that was granted nothing.
void Core::tell_end(const Name& name, Instant begun, bool waited, const engine::Said& said) {
  events_->emit(waited ? Event::Kind::timed_out : Event::Kind::busy, name.text(), {}, since(begun), {}, said);
}

Stats Core::stats() const {
  const auto& counters = events_->counters();
  const auto& events = counters.events;
  const auto traffic = table_->traffic();
  Stats stats;
  const auto ended = counters.ended.read();  // before what was granted: none ends before that
  stats.waiting = queues_->counts();
  stats.requests_in_flight = traffic.in_flight;
  stats.connections = {traffic.limit, traffic.open, traffic.in_use, traffic.waiting};
  stats.batches = {traffic.batches, traffic.batched};
  stats.adopted = counters.adopted.read();
  stats.released = events.read(Event::Kind::released);
  stats.busy = events.read(Event::Kind::busy);
  stats.timed_out = events.read(Event::Kind::timed_out);
  stats.deadlocks = events.read(Event::Kind::deadlock);
  stats.renewals = counters.renewals.read();
  stats.renewed_late = events.read(Event::Kind::renewed_late);
  stats.abandoned = events.read(Event::Kind::abandoned);
  stats.reconnected = events.read(Event::Kind::reconnected);
  stats.events_dropped = counters.events_dropped.read();
  counters.lost.for_each([&](Loss loss, std::uint64_t count) { stats.lost.emplace(loss, count); });
  counters.retried.for_each([&](RetryCause cause, std::uint64_t count) { stats.retried.emplace(cause, count); });
  stats.rounds = counters.rounds.read();
  stats.waited = counters.waited.read();
  const auto begun = stats.granted() + stats.adopted;
  stats.leases = begun > ended ? begun - ended : 0;
  return stats;
}

}  // namespace v0
}  // namespace dlock
