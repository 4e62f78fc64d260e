// The promise that an engine keeps to its number of connections, and that waiting for one ends in time.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("one connection serves many threads, and their renewals") {
  Database database;
  auto engine = database.engine({.connections = 1});
  const auto kept = engine.try_lock("kept", {.lease = 2500ms * slowness()});
  REQUIRE(kept);
  in_parallel(8, [&](int i) {
    for (int round = 0; round < 10; ++round) {
      auto lock = engine.try_lock("job " + std::to_string(i));
      REQUIRE(lock);
      CHECK(lock->release() == Released::freed);
    }
  });
  CHECK(kept->valid());
}

TEST_CASE("waiters for one lock share one connection and all get their turn") {
  Database database;
  auto engine = database.engine({.connections = 1, .polling = {.longest = 20ms}});
  std::atomic<int> turns{0};
  in_parallel(6, [&](int) {
    auto lock = engine.try_lock_for("job", 2min);
    REQUIRE(lock);
    ++turns;
  });
  CHECK(turns == 6);
}

TEST_CASE("an engine can be moved, and its locks outlive it") {
  Database database;
  std::optional<Lock> lock;
  {
    auto first = database.engine();
    Engine second(std::move(first));
    lock = second.try_lock("job");
    first = std::move(second);
    CHECK(first.try_lock("job")->token() == lock->token());
  }
  REQUIRE(lock);
  CHECK(lock->release() == Released::freed);
}

TEST_CASE("a pool of one connection carries a thousand random operations on twenty names to their end") {
  Database database;
  auto engine = database.engine({.connections = 1});
  constexpr int threads = 8, operations = 125, names = 20;
  std::atomic<int> granted{0}, busy{0};
  in_parallel(threads, [&](int thread) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    std::vector<Lock> held;
    for (int i = 0; i < operations; ++i) {
      const auto name = "name " + std::to_string(random() % names);
      switch (random() % 4) {
        case 0:
          if (!held.empty()) held.erase(held.begin() + static_cast<std::ptrdiff_t>(random() % held.size()));
          break;
        case 1: engine.inspect(name); break;
        case 2:
          held.clear();  // who waits holds nothing, so that nobody waits for ever
          held.push_back(engine.lock(name));
          ++granted;
          break;
        default:
          if (auto lock = engine.try_lock(name)) {
            held.push_back(std::move(*lock));
            ++granted;
          } else {
            ++busy;
          }
      }
    }
  });
  CHECK(granted > threads);
  CHECK(busy > 0);
}
