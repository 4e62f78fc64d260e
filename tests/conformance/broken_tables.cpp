// The promise that a table which cannot be used is refused with the command that mends it.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

#include <atomic>
#include <optional>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

Thrown opening(const std::string& url) {
  return thrown_by([&] { Engine engine(url); });
}

void check_names_the_command(const Thrown& thrown) {
  CHECK(thrown.fault == Fault::schema);
  CHECK_MESSAGE(thrown.names("dlock-migrate"), thrown.text);
  CHECK(thrown.text.find('\n') == std::string::npos);
}

}  // namespace

TEST_CASE("without the table an engine does not open, and says how to make it") {
  const auto test_database = opener().test_database();
  const auto thrown = opening(test_database->url());
  check_names_the_command(thrown);
  CHECK_MESSAGE(thrown.names("dlock-migrate up"), thrown.text);
  CHECK_MESSAGE(thrown.names("resource_lock"), thrown.text);
}

TEST_CASE("a table that is too old is refused") {
  Database database;
  database.admin().run("DROP VIEW resource_lock_status");
  database.admin().run("ALTER TABLE resource_lock DROP COLUMN actor");
  database.admin().run("DELETE FROM resource_lock_schema_history");
  check_names_the_command(opening(database.url()));
}

TEST_CASE("a table that is too new for this library is refused, one that is newer and says it fits is not") {
  Database database;
  const std::string newer =
      "INSERT INTO resource_lock_schema_history (version, name, checksum, state, steps_done, steps_total, min_client, "
      "started_at, finished_at, tool_version, applied_by, error) SELECT 900, 'of_the_future', checksum, state, "
      "steps_done, steps_total, ";
  const std::string rest =
      ", started_at, finished_at, tool_version, applied_by, error FROM resource_lock_schema_history WHERE version = 1";
  database.admin().run(newer + "min_client" + rest);
  CHECK_FALSE(opening(database.url()).fault);
  database.admin().run("DELETE FROM resource_lock_schema_history WHERE version = 900");
  database.admin().run(newer + "'999.0.0'" + rest);
  const auto thrown = opening(database.url());
  CHECK(thrown.fault == Fault::schema);
  CHECK_MESSAGE(thrown.names("900"), thrown.text);
  CHECK_MESSAGE(thrown.names("dlock"), thrown.text);
}

TEST_CASE("a table without its floor row is refused") {
  Database database;
  database.admin().run("DELETE FROM resource_lock WHERE name = ''");
  const auto thrown = opening(database.url());
  check_names_the_command(thrown);
  CHECK_MESSAGE(thrown.names("floor"), thrown.text);
}

TEST_CASE("a table with a missing column is refused, also if its history says otherwise") {
  for (const std::string column : {"label", "kept", "ended_token", "outcome", "reason"}) {
    CAPTURE(column);
    Database database;
    database.admin().run("DROP VIEW resource_lock_status");
    database.admin().run("ALTER TABLE resource_lock DROP COLUMN " + column);
    check_names_the_command(opening(database.url()));
  }
}

TEST_CASE("a table that vanishes under an open engine is an error of every call that needs it") {
  Database database;
  auto engine = database.engine();
  database.admin().run("DROP VIEW resource_lock_status");
  database.admin().run("ALTER TABLE resource_lock RENAME TO elsewhere");
  for (const auto& thrown : {thrown_by([&] { engine.try_lock("job"); }), thrown_by([&] { engine.inspect("job"); }),
                             thrown_by([&] { engine.list(); }), thrown_by([&] { engine.reap(); })})
    check_names_the_command(thrown);
  database.admin().run("ALTER TABLE elsewhere RENAME TO resource_lock");
  CHECK(engine.try_lock("job").has_value());
}

TEST_CASE(
    "a table that is emptied under an open engine is an error of every call, which names the command that mends it") {
  Database database;
  auto engine = database.engine();
  engine.try_lock("another").reset();
  const auto last = engine.try_lock("job")->token();
  // As TRUNCATE does it, and as a clumsy clean-up does: with the rows there, and without.
  for (const std::string what : {"DELETE FROM resource_lock WHERE name = ''", "DELETE FROM resource_lock"}) {
    CAPTURE(what);
    database.admin().run(what);
    const LockOptions fifo{.fairness = Fairness::fifo}, node{.reentrance = Reentrance::node};
    Caller caller(database.test_database());
    const auto in_transaction = [&](const std::string& name) {
      caller.begin(database.test_database().beginnings().front());
      auto thrown = thrown_by([&] { engine.try_lock_in(caller.native(), name); });
      caller.run("ROLLBACK");
      return thrown;
    };
    for (const std::string name : {"job", "new"}) {
      CAPTURE(name);
      for (const auto& thrown :
           {thrown_by([&] { engine.try_lock(name); }), thrown_by([&] { engine.try_lock_for(name, 0s); }),
            thrown_by([&] { engine.try_lock_for(name, 20s); }),
            thrown_by([&] { static_cast<void>(engine.lock(name)); }), thrown_by([&] { engine.try_lock(name, node); }),
            thrown_by([&] { static_cast<void>(engine.lock(name, fifo)); }), in_transaction(name)}) {
        check_names_the_command(thrown);
        CHECK_MESSAGE(thrown.names("dlock-migrate repair"), thrown.text);
        CHECK_MESSAGE(thrown.names("floor"), thrown.text);
      }
    }
    const auto reaper = thrown_by([&] { engine.reap(); });
    check_names_the_command(reaper);
    CHECK_MESSAGE(reaper.names("dlock-migrate repair"), reaper.text);
    CHECK(database.admin().held() == 0);
    const auto mended = schema::repair(database.url());
    CHECK_MESSAGE(mended.state == schema::SchemaState::good, mended.message);
    CHECK(schema::check(database.url()).state == schema::SchemaState::good);
    for (const char* name : {"job", "new"}) CHECK(engine.try_lock(name)->token() > last);
  }
}

TEST_CASE("without its floor row a name that was locked before is an error, or goes on above its last token") {
  Database database;
  auto engine = database.engine();
  for (int i = 0; i < 3; ++i) engine.try_lock("job").reset();
  const auto last = database.admin().token("job");
  database.admin().run("DELETE FROM resource_lock WHERE name = ''");
  std::optional<Lock> lock;
  const auto thrown = thrown_by([&] { lock = engine.try_lock("job"); });
  if (thrown.fault) check_names_the_command(thrown);
  else CHECK(lock->token() > last);
  check_names_the_command(thrown_by([&] { engine.try_lock("new"); }));
}

TEST_CASE("a repair of the floor puts the next token of every name above it, also of rows from a backup") {
  Database database;
  auto engine = database.engine();
  for (int i = 0; i < 3; ++i) engine.try_lock("job").reset();
  database.admin().run("UPDATE resource_lock SET token = 2 WHERE name = 'job'");
  database.admin().run("DELETE FROM resource_lock WHERE name = ''");
  static_cast<void>(schema::repair(database.url()));
  CHECK(number(database.admin().floor()) > 1'000'000);
  CHECK(engine.try_lock("job")->token() > database.admin().floor());
  CHECK(engine.try_lock("job")->token() > database.admin().floor());
}

TEST_CASE("requests that travel together are told of a floor that is gone, too") {
  Database database;
  auto engine = database.engine({.connections = 1});
  for (int i = 0; i < 8; ++i) engine.try_lock("old " + std::to_string(i)).reset();
  database.admin().run("DELETE FROM resource_lock WHERE name = ''");
  std::atomic<int> told{0};
  in_parallel(32, [&](int i) {
    const auto name = (i % 2 == 0 ? "old " : "new ") + std::to_string(i % 8);
    for (int round = 0; round < 5; ++round)
      if (thrown_by([&] { engine.try_lock(name); }).fault == Fault::schema) ++told;
  });
  CHECK(told == 32 * 5);
  static_cast<void>(schema::repair(database.url()));
}

TEST_CASE("what a repair of the floor would do can be looked at first") {
  Database database;
  database.admin().run("DELETE FROM resource_lock WHERE name = ''");
  const auto status = schema::check(database.url());
  CHECK(status.state == schema::SchemaState::drift);
  schema::Options dry;
  dry.dry_run = true;
  const auto planned = schema::repair(database.url(), dry);
  CHECK_MESSAGE(planned.plan.find("INSERT") != std::string::npos, planned.plan);
  CHECK(database.admin().number("SELECT count(*) FROM resource_lock") == 0);
  static_cast<void>(schema::repair(database.url()));
  CHECK(database.admin().number("SELECT count(*) FROM resource_lock") == 1);
  const auto floor = database.admin().floor();
  static_cast<void>(schema::repair(database.url()));
  CHECK(database.admin().floor() == floor);
}

TEST_CASE("another name of the table is another table") {
  Database database;
  auto thrown = thrown_by([&] { database.engine({.table = "my_locks"}); });
  check_names_the_command(thrown);
  CHECK_MESSAGE(thrown.names("my_locks"), thrown.text);
  Engine::install_schema(database.url(), {.table = "my_locks"});
  auto mine = database.engine({.table = "my_locks"});
  auto engine = database.engine();
  const auto one = mine.try_lock("job");
  const auto two = engine.try_lock("job");
  CHECK(one);
  CHECK(two);
}
