// Tests when a waiter believes that it is in a deadlock, and how soon it looks.
#include "engine/wait/deadlock_detector.hpp"

#include "engine/fake_lock_table.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using namespace dlock::test;
using dlock::BootClock;
using dlock::Fault;
using dlock::later;
using dlock::Token;
using dlock::engine::DeadlockDetector;
using dlock::store::WaitEdge;

namespace {

// Whose engine does not matter: the last 16 digits do.
std::string actor(char job) { return std::string(16, 'e') + std::string(16, job); }

WaitEdge edge(const std::string& name, const std::string& waiter, std::int64_t since, const std::string& holder,
              char job) {
  WaitEdge edge;
  edge.name = name;
  edge.waiter = waiter;
  edge.waiter_actor = actor(waiter.front());
  edge.since = since;
  edge.holder = holder;
  edge.holder_actor = actor(job);
  edge.holder_label = std::string(1, job);
  edge.token = Token{7};
  return edge;
}

// a waits for y, which b holds, since 10; b waits for x, which a holds, since 20. Each sees its own wait first.
std::vector<WaitEdge> seen_by(char job) {
  std::vector<WaitEdge> edges{edge("y", "a1", 10, "b2", 'b'), edge("x", "b1", 20, "a2", 'a')};
  if (job == 'b') std::swap(edges[0], edges[1]);
  return edges;
}

// One who waits.
struct Waiter {
  char job;
  FakeLockTable table{};
  DeadlockDetector detector{};

  // The fault that a look at this chain ends with; none: there is nothing to be done about it.
  std::optional<Fault> look(std::vector<WaitEdge> edges) {
    table.waiting().edges = std::move(edges);
    try {
      detector.look(table, actor(job), std::string(1, job) + "1", dlock::Deadline::max());
    } catch (const dlock::Error& error) { return error.fault(); }
    return std::nullopt;
  }
};

}  // namespace

TEST_CASE("a cycle is a deadlock when it was there at two looks, one after the other") {
  Waiter youngest{'b'};
  CHECK_FALSE(youngest.look(seen_by('b')));
  CHECK(youngest.look(seen_by('b')) == Fault::deadlock);
}

TEST_CASE("a cycle that was another one, or none, at the look before is no deadlock yet") {
  Waiter youngest{'b'};
  auto moved = seen_by('b');
  moved[1].token = Token{8};  // granted anew since: who holds it may have come by without waiting
  CHECK_FALSE(youngest.look(seen_by('b')));
  CHECK_FALSE(youngest.look(moved));
  CHECK_FALSE(youngest.look({}));
  CHECK_FALSE(youngest.look(moved));
  CHECK(youngest.look(moved) == Fault::deadlock);
}

TEST_CASE("of those in a cycle only the youngest gives way") {
  Waiter older{'a'}, youngest{'b'};
  CHECK_FALSE(youngest.look(seen_by('b')));
  for (int i = 0; i < 5; ++i) CHECK_FALSE(older.look(seen_by('a')));
  CHECK(youngest.look(seen_by('b')) == Fault::deadlock);
}

TEST_CASE("where the youngest in a cycle does not see it, the next one gives way some looks later") {
  Waiter older{'a'};
  for (int i = 0; i < 11; ++i) CHECK_FALSE(older.look(seen_by('a')));
  CHECK(older.look(seen_by('a')) == Fault::deadlock);
}

TEST_CASE("a waiter that holds something looks for a deadlock within a third of a second, and again as soon") {
  Waiter waiter{'a'};
  CHECK(waiter.detector.next() == dlock::Instant::max());  // as long as it holds nothing
  waiter.detector.begin();
  CHECK(waiter.detector.next() <= later(BootClock::now(), 300ms));
  CHECK_FALSE(waiter.look({}));
  CHECK(waiter.detector.next() <= later(BootClock::now(), 375ms));
}
