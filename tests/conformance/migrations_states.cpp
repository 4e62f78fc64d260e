// The promise that whatever is wrong with a table or its history is told apart, and told how to mend.
#include "support/database.hpp"
#include "support/later_versions.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

using namespace dlock;
using namespace dlock::test;
using schema::SchemaState;

namespace {

constexpr auto patience = std::chrono::milliseconds{100};

schema::Options impatient() {
  schema::Options options;
  options.timeouts.lock = patience;
  return options;
}

bool names(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

}  // namespace

TEST_CASE("a checksum that differs is drift, and nothing is touched") {
  Database database;
  database.admin().run("UPDATE resource_lock_schema_history SET checksum = 's1:0' WHERE version = 1");
  CHECK(schema::check(database.url()).state == SchemaState::drift);
  CHECK(schema::up(database.url()).state == SchemaState::drift);
  CHECK(schema::down(database.url(), 0).state == SchemaState::drift);
  CHECK(thrown_by([&] { database.engine(); }).fault == Fault::schema);
}

TEST_CASE("a structure that differs is drift, and named") {
  Database database;
  database.admin().run("DROP VIEW resource_lock_status");
  auto status = schema::check(database.url());
  CHECK(status.state == SchemaState::drift);
  CHECK_MESSAGE(names(status.message, "resource_lock_status"), status.message);
  CHECK(schema::status(database.url()).state == SchemaState::good);

  database.admin().run("ALTER TABLE resource_lock ADD COLUMN extra INTEGER");
  status = schema::check(database.url());
  CHECK(status.differences.size() == 2);
  CHECK_MESSAGE(names(status.message, "extra"), status.message);
}

TEST_CASE("the table of those who wait is compared too, and refused at open when it is missing") {
  Database database;
  database.admin().run("DROP VIEW resource_lock_status");
  database.admin().run("ALTER TABLE resource_lock_waiter ADD COLUMN extra INTEGER");
  auto status = schema::check(database.url());
  CHECK(status.state == SchemaState::drift);
  CHECK(status.differences.size() == 2);
  CHECK_MESSAGE(names(status.message, "resource_lock_waiter.extra"), status.message);

  database.admin().run("DROP TABLE resource_lock_waiter");
  status = schema::check(database.url());
  CHECK(status.state == SchemaState::drift);
  CHECK(status.differences.size() == 2);
  CHECK_MESSAGE(names(status.message, "the table resource_lock_waiter is missing"), status.message);
  const auto thrown = thrown_by([&] { database.engine(); });
  CHECK(thrown.fault == Fault::schema);
  CHECK(thrown.names("dlock-migrate check"));
}

TEST_CASE("so is the table of those who hold a name together") {
  Database database;
  database.admin().run("DROP VIEW resource_lock_status");
  database.admin().run("ALTER TABLE resource_lock_holder ADD COLUMN extra INTEGER");
  auto status = schema::check(database.url());
  CHECK(status.differences.size() == 2);
  CHECK_MESSAGE(names(status.message, "resource_lock_holder.extra"), status.message);

  database.admin().run("DROP TABLE resource_lock_holder");
  status = schema::check(database.url());
  CHECK(status.differences.size() == 2);
  CHECK_MESSAGE(names(status.message, "the table resource_lock_holder is missing"), status.message);
  CHECK(thrown_by([&] { database.engine(); }).fault == Fault::schema);
}

TEST_CASE("a missing floor row is drift, and named") {
  Database database;
  database.admin().run("DELETE FROM resource_lock WHERE name = ''");
  const auto status = schema::check(database.url());
  CHECK(status.state == SchemaState::drift);
  CHECK_MESSAGE(names(status.message, "floor"), status.message);
}

TEST_CASE("a floor row that does not say which installation it is is drift, and refused at open") {
  for (const char* wrong : {"", "mine", "0123456789ABCDEF0123456789ABCDEF"}) {
    INFO(wrong);
    Database database;
    database.admin().run(std::string("UPDATE resource_lock SET meta = '") + wrong + "' WHERE name = ''");
    const auto status = schema::check(database.url());
    CHECK(status.state == SchemaState::drift);
    CHECK_MESSAGE(names(status.message, "resource_lock should have, or be: identity in the floor row"), status.message);
    const auto thrown = thrown_by([&] { database.engine(); });
    CHECK(thrown.fault == Fault::schema);
    CHECK(thrown.names("does not say which installation it is"));
    CHECK(thrown.names("dlock-migrate repair"));
    const auto floor = database.admin().floor();
    CHECK(schema::repair(database.url()).state == SchemaState::good);
    CHECK(schema::check(database.url()).state == SchemaState::good);
    CHECK(database.admin().floor() == floor);
    CHECK_FALSE(thrown_by([&] { database.engine(); }).fault);
  }
}

TEST_CASE("a table whose floor row does not say which installation it is is not adopted as one that does") {
  Database database;
  database.admin().run("DROP TABLE resource_lock_schema_history");
  database.admin().run("UPDATE resource_lock SET meta = '' WHERE name = ''");
  const auto refused = schema::baseline(database.url(), 1);
  CHECK(refused.state == SchemaState::drift);
  CHECK_MESSAGE(names(refused.message, "identity in the floor row"), refused.message);
  CHECK_FALSE(schema::status(database.url()).history_exists);
  schema::Options careless;
  careless.verify = false;
  REQUIRE(schema::baseline(database.url(), 1, careless).state == SchemaState::good);
  CHECK(schema::check(database.url()).state == SchemaState::drift);
  CHECK(schema::repair(database.url()).restored.size() == 1);
  CHECK(schema::check(database.url()).state == SchemaState::good);
}

TEST_CASE("a table that is older than the library is refused at open, with the command that brings it up") {
  const auto test_database = opener().test_database();
  REQUIRE(schema::up(test_database->url()).state == SchemaState::good);
  CHECK_FALSE(thrown_by([&] { Engine(test_database->url()); }).fault);
  const LaterVersions versions;
  CHECK(schema::check(test_database->url()).state == SchemaState::pending);
  const auto thrown = thrown_by([&] { Engine(test_database->url()); });
  CHECK(thrown.fault == Fault::schema);
  CHECK_MESSAGE(thrown.names("is at version 1"), thrown.text);
  CHECK_MESSAGE(thrown.names("dlock-migrate up"), thrown.text);
  REQUIRE(schema::up(test_database->url()).state == SchemaState::good);
  CHECK_FALSE(thrown_by([&] { Engine(test_database->url()); }).fault);
}

TEST_CASE("a table that a later dlock has brought up goes on serving an older one, as far as that says so") {
  const auto test_database = opener().test_database();
  {
    const LaterVersions versions;
    REQUIRE(schema::up(test_database->url()).state == SchemaState::good);
  }
  const auto status = schema::check(test_database->url());
  CHECK_MESSAGE(status.state == SchemaState::good, status.message);
  CHECK(status.current == 3);
  CHECK(status.latest == 1);
  {
    Engine engine(test_database->url(), {.timeouts = {.release = far_longer()}});
    CHECK(engine.try_lock("job")->release() == Released::freed);
  }
  CHECK(schema::up(test_database->url()).versions.empty());
  CHECK(schema::down(test_database->url(), 0).state == SchemaState::incompatible);
}

TEST_CASE("a failed version is shown with its cause") {
  Database database;
  database.admin().run(
      "UPDATE resource_lock_schema_history SET state = 'failed', steps_done = 1, error = 'the disk was full'");
  for (const auto& status : {schema::check(database.url()), schema::status(database.url())}) {
    CHECK(status.state == SchemaState::interrupted);
    CHECK_MESSAGE(names(status.message, "the disk was full"), status.message);
    CHECK_MESSAGE(names(status.hint, "dlock-migrate up"), status.hint);
  }
  const auto thrown = thrown_by([&] { database.engine(); });
  CHECK(thrown.fault == Fault::schema);
  CHECK(thrown.names("dlock-migrate up"));
}

TEST_CASE("while another migrator is at work, one waits for it, and says who it is when time is up") {
  Database database;
  database.admin().run(
      "UPDATE resource_lock_schema_history SET state = 'running', owner = 'somebody', applied_by = 'deploy@host7', "
      "lease_until = 9000000000000000");
  CHECK(schema::check(database.url()).state == SchemaState::locked);
  for (const auto& report : {schema::up(database.url(), impatient()), schema::down(database.url(), 0, impatient())}) {
    CHECK(report.state == SchemaState::locked);
    CHECK_MESSAGE(names(report.message, "deploy@host7"), report.message);
  }
  CHECK(thrown_by([&] { database.engine(); }).fault == Fault::schema);
}

TEST_CASE("a newer table that fits is left alone, one that does not is refused") {
  Database database;
  const auto next = std::to_string(schema::status(database.url()).latest + 1);
  const auto add = [&](const std::string& min_client) {
    database.admin().run(
        "INSERT INTO resource_lock_schema_history (version, name, checksum, state, steps_done, steps_total, "
        "min_client, "
        "started_at, tool_version, applied_by) VALUES (" +
        next + ", 'of_the_future', 's1:1', 'applied', 1, 1, '" + min_client + "', 0, '9.0.0', 'somebody')");
  };
  add("0.0.1");
  const auto fits = schema::up(database.url());
  CHECK(fits.state == SchemaState::good);
  CHECK_MESSAGE(names(fits.message, "newer"), fits.message);
  CHECK(schema::check(database.url()).state == SchemaState::good);
  CHECK_FALSE(thrown_by([&] { database.engine(); }).fault);
  CHECK(schema::down(database.url(), 0).state == SchemaState::incompatible);

  database.admin().run("DELETE FROM resource_lock_schema_history WHERE version = " + next);
  add("99.0.0");
  CHECK(schema::up(database.url()).state == SchemaState::incompatible);
  CHECK(schema::check(database.url()).state == SchemaState::incompatible);
  CHECK(thrown_by([&] { database.engine(); }).fault == Fault::schema);
}

TEST_CASE("a history of a later format is not misread") {
  Database database;
  database.admin().run("UPDATE resource_lock_schema_history SET format = 2");
  CHECK(schema::up(database.url()).state == SchemaState::incompatible);
  CHECK(thrown_by([&] { database.engine(); }).fault == Fault::schema);
}

TEST_CASE("a table without a history is not touched, but can be used") {
  Database database;
  database.admin().run("DROP TABLE resource_lock_schema_history");
  CHECK(schema::up(database.url()).state == SchemaState::drift);
  CHECK(schema::check(database.url()).state == SchemaState::drift);
  CHECK_FALSE(schema::status(database.url()).history_exists);
  auto engine = database.engine();
  CHECK(engine.try_lock("job")->release() == Released::freed);
}

TEST_CASE("a history without its table is refused with the way out") {
  Database database;
  database.admin().run("DROP VIEW resource_lock_status");
  database.admin().run("ALTER TABLE resource_lock RENAME TO elsewhere");
  CHECK(schema::check(database.url()).state == SchemaState::drift);
  CHECK(schema::up(database.url()).state == SchemaState::drift);
  const auto thrown = thrown_by([&] { database.engine(); });
  CHECK(thrown.fault == Fault::schema);
  CHECK(thrown.names("dlock-migrate up"));
  database.admin().run("ALTER TABLE elsewhere RENAME TO resource_lock");
}

TEST_CASE("two tables in one database have two histories") {
  Database database;
  schema::Options options;
  options.table = "other_lock";
  CHECK(schema::up(database.url(), options).state == SchemaState::good);
  CHECK(schema::check(database.url(), options).state == SchemaState::good);
  CHECK(schema::down(database.url(), 0, options).state == SchemaState::good);
  CHECK(schema::check(database.url()).state == SchemaState::good);
}
