// The promise that a lock counts for the thread that has it when deadlocks are looked for, not for the one that took
// it.
#include "support/database.hpp"
#include "support/deadlock.hpp"

#include <doctest/doctest.h>

#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

std::string waits_for_b(Engine& engine, Duration wait, const LockOptions& options = {}) {
  return outcome([&] { return engine.try_lock_for("B", wait, options).has_value(); });
}

}  // namespace

TEST_CASE("a lock that was given to another thread makes no deadlock for the one that took it") {
  // Whoever holds something else has a row while it waits, and so has whoever waits in turn.
  for (const bool holds_more : {true, false}) {
    Database database;
    auto engine = database.engine();
    std::optional<Lock> more;
    if (holds_more) more = engine.try_lock("C");
    auto a = engine.lock("A");
    std::latch end(1);
    std::thread worker([held = std::move(a), &end] { end.wait(); });  // it holds it, and touches it never
    HoldsBWantsA other(database.engine({.label = "other"}));
    CHECK(waits(database, 1));
    LockOptions options;
    if (!holds_more) options.fairness = Fairness::fifo;
    CHECK(waits_for_b(engine, long_enough, options) == "busy");
    CHECK(other.stop() == "busy");
    end.count_down();
    worker.join();
  }
}

TEST_CASE("a lock that was detached makes no deadlock for the thread that took it") {
  Database database;
  auto engine = database.engine();
  const auto more = engine.lock("C");
  auto a = engine.lock("A");
  a.detach();
  HoldsBWantsA other(database.engine({.label = "other"}));
  CHECK(waits(database, 1));
  CHECK(waits_for_b(engine, long_enough) == "busy");
  CHECK(other.stop() == "busy");
  free_by_force(engine, "A");
}

TEST_CASE("a thread that uses a lock that it was given is its holder: its deadlock is found") {
  Database database;
  auto engine = database.engine({.label = "worker"});
  auto a = engine.lock("A");
  HoldsBWantsA other(database.engine({.label = "other"}));
  std::string told;
  std::thread worker([held = std::move(a), &engine, &told] {
    if (held.valid()) told = waits_for_b(engine, 2min);
  });
  worker.join();  // and lets go of A
  const auto theirs = other.join();
  const bool mine = told != "granted";
  CHECK((theirs == "granted") == mine);
  const auto& text = mine ? told : theirs;
  CHECK_MESSAGE(text.find("worker holds \"A\", waits for \"B\"") != std::string::npos, text);
  CHECK_MESSAGE(text.find("other holds \"B\", waits for \"A\"") != std::string::npos, text);
}

TEST_CASE("a thread that has moved its lock to another place, and uses it there, is still its holder") {
  Database database;
  auto engine = database.engine({.label = "worker"});
  std::vector<Lock> locks;
  locks.push_back(engine.lock("A"));
  HoldsBWantsA other(database.engine({.label = "other"}));
  locks.back().check();
  auto told = waits_for_b(engine, 2min);
  locks.clear();
  const auto theirs = other.join();
  CHECK((told == "granted") != (theirs == "granted"));
  CHECK((told + theirs).find("deadlock: ") != std::string::npos);
}
