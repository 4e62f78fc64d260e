// This file knows the promise that a waiter wakes when the lock is released, not when it next looks.
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <future>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// An engine whose waiters do not look by themselves in the time of a test.
EngineOptions sleepy() {
  EngineOptions options;
  options.poll_first = options.poll_floor = 10min;
  return options;
}

// Waits, and lets go at once. Whether it was granted the lock.
auto waiting(Engine& engine) {
  return std::async(std::launch::async, [&engine] { return engine.try_lock_for("job", 2min).has_value(); });
}

bool marked(Database& database) {
  return database.admin().number("SELECT wanted_until FROM resource_lock WHERE name = 'job'") > 0;
}

}  // namespace

TEST_CASE("a waiter in another engine wakes at the release") {
  Database database;
  auto holder = database.engine(), waiter = database.engine(sleepy());
  {
    // Where the holder has to ring, it learns with its first release that somebody listens.
    auto eager = database.engine();
    auto lock = holder.try_lock("job");
    REQUIRE(lock);
    auto first = waiting(eager);
    REQUIRE(eventually([&] { return marked(database); }));
    lock->release();
    REQUIRE(first.get());
  }
  for (int round = 0; round < 5; ++round) {
    auto lock = holder.lock("job");
    auto wait = waiting(waiter);
    CHECK(wait.wait_for(300ms) == std::future_status::timeout);
    lock.release();
    const Stopwatch time;
    CHECK(wait.get());
    CHECK(time.elapsed() < 20s);
  }
}

TEST_CASE("threads of one engine wake each other, one after the other") {
  Database database;
  auto engine = database.engine(sleepy());
  auto lock = engine.try_lock("job", {.reentrance = Reentrance::none});
  REQUIRE(lock);
  std::vector<std::future<bool>> waits;
  for (int i = 0; i < 20; ++i) waits.push_back(waiting(engine));
  const Stopwatch time;
  lock->release();
  for (auto& wait : waits) CHECK(wait.get());
  CHECK(time.elapsed() < 30s);
}

TEST_CASE("a waiter that hears nothing gets the lock when it looks") {
  Database database;
  auto holder = database.engine(), waiter = database.engine({.listen = false});
  auto lock = holder.try_lock("job");
  REQUIRE(lock);
  auto wait = waiting(waiter);
  CHECK(wait.wait_for(300ms) == std::future_status::timeout);
  CHECK_FALSE(marked(database));
  lock->release();
  const Stopwatch time;
  CHECK(wait.get());
  CHECK(time.elapsed() < 10s);
}

TEST_CASE("the end of a lease wakes a waiter that hears nothing and looks at nothing") {
  Database database;
  auto holder = database.engine(), waiter = database.engine(sleepy());
  auto lock = holder.try_lock("job", {.lease = 1500ms, .renew = false});
  REQUIRE(lock);
  lock->detach();
  const Stopwatch time;
  CHECK(waiting(waiter).get());
  CHECK(time.elapsed() < 20s);
}

TEST_CASE("to wait for a free lock is to wake at its release, too") {
  Database database;
  auto holder = database.engine(), watcher = database.engine();
  auto lock = holder.try_lock("job");
  REQUIRE(lock);
  auto wait = std::async(std::launch::async, [&] { return watcher.wait_free("job", 2min); });
  REQUIRE(eventually([&] { return marked(database); }));
  CHECK(wait.wait_for(50ms) == std::future_status::timeout);
  lock->release();
  CHECK(wait.get());
  CHECK(database.admin().held() == 0);
}
