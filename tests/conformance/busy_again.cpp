// The promise that who tries a busy lock again and again is told the truth each time, as cheaply as he is.
#include "support/database.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// Has been told that it is busy a moment ago.
Engine one_that_knows(Database& database, std::string_view name) {
  auto engine = database.engine({.reentrance = Reentrance::none});
  CHECK_FALSE(engine.try_lock(name));
  CHECK_FALSE(engine.try_lock(name));
  return engine;
}

}  // namespace

TEST_CASE("a lock that was busy a moment ago is granted by the first try after its release") {
  Database database;
  auto holder = database.engine();
  auto lock = holder.try_lock("job");
  REQUIRE(lock);
  auto engine = one_that_knows(database, "job");
  const auto before = lock->token();
  CHECK(lock->release() == Released::freed);
  const auto next = engine.try_lock("job");
  REQUIRE(next);
  CHECK(number(next->token()) == number(before) + 1);
  CHECK_FALSE(engine.try_lock("job"));
}

TEST_CASE("a lock that was busy a moment ago is granted by the first try when nobody has it any more") {
  Database database;
  auto holder = database.engine();
  auto lock = holder.try_lock("job", {.renew = false});
  REQUIRE(lock);
  auto engine = one_that_knows(database, "job");
  lock->detach();
  SUBCASE("since its lease has ended") { database.admin().expire("job"); }
  SUBCASE("since its row has gone") { database.admin().run("DELETE FROM resource_lock WHERE name = 'job'"); }
  CHECK(engine.try_lock("job"));
}

TEST_CASE("a name inside its at-least time stays busy, and another name is not") {
  Database database;
  database.engine().try_lock("job", {.at_least = 1h}).reset();
  auto engine = one_that_knows(database, "job");
  CHECK_FALSE(engine.try_lock("job"));
  CHECK(engine.try_lock("another job"));
}

TEST_CASE("bad options are refused also where the lock was busy a moment ago") {
  Database database;
  auto holder = database.engine();
  const auto lock = holder.try_lock("job");
  REQUIRE(lock);
  auto engine = one_that_knows(database, "job");
  CHECK(thrown_by([&] { engine.try_lock("job", {.lease = 0ms}); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { engine.try_lock("job", {.metadata = std::string(5000, 'x')}); }).fault == Fault::misuse);
}

TEST_CASE("a node enters what it holds also if it was busy for others of this process a moment ago") {
  Database database;
  auto holder = database.engine({.node = "replica-1"});
  const auto lock = holder.try_lock("job", {.reentrance = Reentrance::node});
  REQUIRE(lock);
  auto engine = database.engine({.node = "replica-1"});
  CHECK_FALSE(engine.try_lock("job", {.reentrance = Reentrance::none}));
  const auto entered = engine.try_lock("job", {.reentrance = Reentrance::node});
  REQUIRE(entered);
  CHECK(entered->token() == lock->token());
}
