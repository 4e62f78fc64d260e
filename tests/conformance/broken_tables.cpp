// This file knows the promise that a table which cannot be used is refused with the command that mends it.
#include "support/database.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;

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
  const auto place = opener().place();
  const auto thrown = opening(place->url());
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
  Database database;
  database.admin().run("DROP VIEW resource_lock_status");
  database.admin().run("ALTER TABLE resource_lock DROP COLUMN label");
  const auto thrown = opening(database.url());
  check_names_the_command(thrown);
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
