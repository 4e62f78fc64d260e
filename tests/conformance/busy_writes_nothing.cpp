// The promise that looking writes nothing, at a busy lock or at the schema: no page, no log, no number.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

#include <chrono>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// What the database has written may also be of its own housekeeping, such as what is left of tables that were dropped:
// then the same once more, until it rests for so long. Work that writes does so each time.
template <class Work>
bool writes_nothing(TestDatabase& test_database, Work work, std::chrono::milliseconds limit = far_longer()) {
  return eventually(
      [&] {
        const auto before = test_database.written();
        work();
        return test_database.written() == before;
      },
      limit);
}
template <class Work>
bool writes_nothing(Database& database, Work work) {
  return writes_nothing(database.test_database(), work);
}

}  // namespace

TEST_CASE("what tells whether anything was written does tell") {
  Database database(opener().quiet_database());
  auto engine = database.engine();
  CHECK_FALSE(writes_nothing(
      database.test_database(), [&] { engine.try_lock("job").reset(); }, 1s));
}

TEST_CASE("a try on a busy lock writes nothing") {
  Database database(opener().quiet_database());
  auto holder = database.engine();
  auto engine = database.engine();
  const auto lock = holder.try_lock("job", {.lease = 1h, .renew = false});
  REQUIRE(lock);
  CHECK_FALSE(engine.try_lock("job"));
  CHECK(writes_nothing(database, [&] {
    for (int i = 0; i < 50; ++i) CHECK_FALSE(engine.try_lock("job", {.metadata = "wanted"}));
  }));
  // The first try of an engine is another statement than those that follow at once.
  CHECK(writes_nothing(database, [&] {
    for (int i = 0; i < 3; ++i) CHECK_FALSE(database.engine().try_lock("job", {.metadata = "wanted"}));
  }));
}

TEST_CASE("tries of many threads on busy locks, through one connection, write nothing") {
  Database database(opener().quiet_database());
  auto holder = database.engine();
  std::vector<Lock> locks;
  for (int i = 0; i < 8; ++i) locks.push_back(holder.lock("job " + std::to_string(i), {.lease = 1h, .renew = false}));
  CHECK(writes_nothing(database, [&] {
    auto engine = database.engine({.connections = 1});
    in_parallel(8, [&](int i) {
      for (int round = 0; round < 5; ++round) CHECK_FALSE(engine.try_lock("job " + std::to_string(i)));
    });
  }));
}

TEST_CASE("a try on several names of which one is busy writes nothing") {
  Database database(opener().quiet_database());
  auto holder = database.engine();
  auto engine = database.engine();
  engine.try_lock_all({"a", "b", "c"})->release();
  const auto lock = holder.try_lock("b", {.lease = 1h, .renew = false});
  REQUIRE(lock);
  CHECK(writes_nothing(database, [&] {
    for (int i = 0; i < 20; ++i) CHECK_FALSE(engine.try_lock_all({"c", "a", "b"}));
    for (int i = 0; i < 3; ++i) CHECK_FALSE(engine.try_lock_all({"new", "b"}));
  }));
}

TEST_CASE("a try on a lock inside its at-least time writes nothing") {
  Database database(opener().quiet_database());
  auto engine = database.engine();
  engine.try_lock("job", {.at_least = 1h}).reset();
  CHECK(writes_nothing(database, [&] {
    for (int i = 0; i < 50; ++i) CHECK_FALSE(engine.try_lock("job"));
  }));
}

TEST_CASE("waiting by looking, and asking who holds a lock, write nothing") {
  Database database(opener().quiet_database());
  auto holder = database.engine();
  auto engine = database.engine({.listen = false});  // who listens marks the row as wanted, once
  const auto lock = holder.try_lock("job", {.lease = 1h, .renew = false});
  REQUIRE(lock);
  CHECK(writes_nothing(database, [&] {
    Refusal refusal;
    CHECK_FALSE(answered([&] { return engine.try_lock_for("job", 200ms, {.reentrance = Reentrance::none}); }));
    CHECK(eventually([&] { return !engine.try_lock("job", {}, &refusal) && !refusal.holder.owner.empty(); }));
    CHECK(refusal.holder.owner == lock->owner());
    CHECK_FALSE(answered([&] { return engine.wait_free("job", 100ms); }));
    CHECK(engine.inspect("job"));
    CHECK(engine.list().size() == 1);
  }));
}

TEST_CASE("a try that stands behind a queue writes nothing") {
  Database database(opener().quiet_database());
  auto engine = database.engine();
  const auto table = database.table();
  Hand waiter(*table, 1);
  waiter.draw_ticket();
  CHECK_FALSE(engine.try_lock("job"));
  CHECK(writes_nothing(database, [&] {
    for (int i = 0; i < 10; ++i) CHECK_FALSE(engine.try_lock("job"));
    CHECK(waiter.draw_ticket() == 1);
  }));
  waiter.remove();
}

TEST_CASE("looking at the schema writes nothing, on an empty database and on a migrated one") {
  const auto test_database = opener().quiet_database();
  {
    // On a file that is not there yet, there is nothing to be written to.
    const auto status = schema::status(test_database->url());
    CHECK(status.state == schema::SchemaState::pending);
    CHECK(status.current == 0);
    CHECK(schema::check(test_database->url()).state == schema::SchemaState::pending);
    CHECK_FALSE(schema::status(test_database->url()).history_exists);
  }
  CHECK(schema::up(test_database->url()).state == schema::SchemaState::good);
  CHECK(writes_nothing(*test_database, [&] {
    CHECK(schema::status(test_database->url()).state == schema::SchemaState::good);
    CHECK(schema::check(test_database->url()).state == schema::SchemaState::good);
    CHECK(schema::up(test_database->url()).state == schema::SchemaState::good);
  }));
}
