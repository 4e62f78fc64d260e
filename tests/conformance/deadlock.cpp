// The promise that a deadlock between waiters is found, named and broken, and that none is imagined.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <latch>
#include <random>
#include <set>
#include <thread>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

EngineOptions labelled(const std::string& label) {
  EngineOptions options;
  options.label = label;
  return options;
}

// A ring of `count` jobs, each of which holds one name and wants the next one's. Answers what each was told.
std::vector<std::string> ring(Database& database, int count, const std::vector<LockOptions>& options) {
  std::vector<Engine> engines;
  for (int i = 0; i < count; ++i) engines.push_back(database.engine(labelled("job" + std::to_string(i))));
  std::vector<std::string> told(static_cast<std::size_t>(count));
  std::latch holding(count);
  in_parallel(count, [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    auto& engine = engines[at];
    auto mine = engine.try_lock("n" + std::to_string(i), options[at]);
    holding.arrive_and_wait();
    if (!mine) return;
    const auto thrown = thrown_by([&] {
      const auto next = engine.try_lock_for("n" + std::to_string((i + 1) % count), 4min, options[at]);
      told[at] = next ? "granted" : "busy";
    });
    if (thrown.fault) told[at] = thrown.fault == Fault::deadlock ? thrown.text : "wrong: " + thrown.text;
    mine->release();
  });
  return told;
}

void check_one_victim(const std::vector<std::string>& told) {
  int victims = 0;
  for (const auto& text : told) {
    if (text == "granted") continue;
    ++victims;
    CHECK_MESSAGE(text.find("deadlock: ") != std::string::npos, text);
    for (std::size_t i = 0; i < told.size(); ++i) {
      const auto words = "job" + std::to_string(i) + " holds \"n" + std::to_string(i) + "\", waits for \"n" +
                         std::to_string((i + 1) % told.size()) + "\"";
      CHECK_MESSAGE(text.find(words) != std::string::npos, text);
    }
  }
  CHECK(victims == 1);
}

}  // namespace

TEST_CASE("of two threads that wait for each other exactly one is told, by name, and the other goes on") {
  Database database;
  const Stopwatch time;
  check_one_victim(ring(database, 2, std::vector<LockOptions>(2)));
  CHECK(time.elapsed() < 30s * slowness());
  CHECK(eventually([&] { return database.admin().number("SELECT count(*) FROM resource_lock_waiter") == 0; }));
}

TEST_CASE("a ring of five, some of whom wait in turn, has one victim as well") {
  Database database;
  std::vector<LockOptions> options(5);
  options[1].fairness = options[3].fairness = Fairness::fifo;
  check_one_victim(ring(database, 5, options));
}

TEST_CASE("jobs with a name are found in a deadlock, whatever threads they use") {
  Database database;
  std::vector<LockOptions> options(2);
  for (int i = 0; i < 2; ++i) {
    options[static_cast<std::size_t>(i)].job = "order " + std::to_string(i);
    options[static_cast<std::size_t>(i)].reentrance = Reentrance::none;
  }
  check_one_victim(ring(database, 2, options));
}

TEST_CASE(
    "who holds something and waits in a transaction is seen again once its row is gone, so that a deadlock is found") {
  Database database;
  auto engine = database.engine({.ticket = 2s * slowness()});
  auto other = database.engine();
  auto wanted = other.lock("wanted");
  const auto rows = [&] {
    return database.admin().number("SELECT count(*) FROM resource_lock_waiter WHERE name = 'wanted'");
  };
  bool granted = false;
  {
    std::jthread waiter([&] {
      const auto mine = engine.lock("mine");
      Caller caller(database.test_database());
      caller.begin(database.test_database().beginnings().back());  // one that does not write yet
      granted = engine.try_lock_in(caller.native(), "wanted", 4min).has_value();
      caller.run("ROLLBACK");
    });
    CHECK(eventually([&] { return rows() == 1; }));
    database.admin().run("DELETE FROM resource_lock_waiter");
    CHECK(eventually([&] { return rows() == 1; }));
    CHECK(wanted.release() == Released::freed);
  }
  CHECK(granted);
}

TEST_CASE("who always asks in the same order is never told of a deadlock") {
  Database database;
  std::atomic<int> alarms = 0, rounds = 0;
  std::vector<Engine> engines;
  for (int i = 0; i < 2; ++i) engines.push_back(database.engine());
  in_parallel(6, [&](int i) {
    auto& engine = engines[static_cast<std::size_t>(i) % 2];
    std::minstd_rand random(static_cast<unsigned>(i) + 1);
    const auto end = std::chrono::steady_clock::now() + 2s;
    while (std::chrono::steady_clock::now() < end) {
      std::set<int> wanted;
      for (int k = 0; k < 3; ++k) wanted.insert(static_cast<int>(random() % 5));
      std::vector<Lock> held;
      const auto thrown = thrown_by([&] {
        for (const int name : wanted)
          if (auto lock = engine.try_lock_for("n" + std::to_string(name), 2min)) held.push_back(std::move(*lock));
      });
      if (thrown.fault) {
        MESSAGE(thrown.text);
        ++alarms;
      }
      ++rounds;
    }
  });
  CHECK(alarms == 0);
  CHECK(rounds > 0);
}
