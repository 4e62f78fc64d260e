// Reads what the table says of names, and puts together what the engine has counted.
#include "engine/inspector.hpp"

#include "engine/glob.hpp"
#include "store/waiter_table.hpp"

#include <algorithm>
#include <utility>

namespace dlock::engine {
namespace {

constexpr Duration longest_glance = std::chrono::seconds{1};

}  // namespace

std::optional<Holder> Inspector::inspect(const Name& name, const std::stop_token& stop) {
  return context_.retry({context_.soon(), stop},
                        [&](Deadline deadline) { return context_.table->inspect(name.text(), deadline); });
}

// For a call whose answer is known, and worth more than this.
std::optional<Holder> Inspector::glance(const Name& name) {
  try {
    return context_.table->inspect(name.text(), std::min(context_.soon(), later(BootClock::now(), longest_glance)));
  } catch (const Failure&) { return std::nullopt; }
}

std::vector<Holder> Inspector::list(const std::string& glob) {
  auto holders = context_.retry(
      context_.soon(), [&](Deadline deadline) { return context_.table->list(literal_prefix(glob), deadline); });
  std::erase_if(holders, [&](const Holder& holder) { return !matches(glob, holder.name); });
  return holders;
}

std::vector<HistoryEntry> Inspector::history(const Name& name, std::size_t limit) {
  return context_.retry(context_.soon(),
                        [&](Deadline deadline) { return context_.table->history(name.text(), limit, deadline); });
}

std::vector<Waiter> Inspector::waiters(const std::string& glob) {
  auto waiters = context_.retry(context_.soon(), [&](Deadline deadline) {
    return context_.table->waiting().waiters(literal_prefix(glob), deadline);
  });
  std::erase_if(waiters, [&](const Waiter& waiter) { return !matches(glob, waiter.name); });
  return waiters;
}

std::vector<Sharer> Inspector::sharers(const std::string& glob) {
  auto sharers = context_.retry(context_.soon(), [&](Deadline deadline) {
    return context_.table->waiting().sharers(literal_prefix(glob), deadline);
  });
  std::erase_if(sharers, [&](const Sharer& sharer) { return !matches(glob, sharer.name); });
  return sharers;
}

Stats Inspector::stats() const {
  const auto& counters = context_.events->counters();
  const auto& events = counters.events;
  const auto traffic = context_.table->traffic();
  Stats stats;
  const auto ended = counters.ended.read();  // before what was granted: none ends before that
  stats.waiting = context_.queues->counts();
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

}  // namespace dlock::engine
