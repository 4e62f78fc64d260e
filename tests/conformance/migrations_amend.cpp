// The promise that a history which does not tell what is there can be put right, and only then.
#include "support/database.hpp"
#include "support/later_versions.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

using namespace dlock;
using namespace dlock::test;
using schema::SchemaState;

namespace {

const std::string history = "resource_lock_schema_history";

bool names(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

schema::Options dry() {
  schema::Options options;
  options.dry_run = true;
  return options;
}

schema::Options careless() {
  schema::Options options;
  options.verify = false;
  return options;
}

// As an interrupted migrator leaves it where each step commits by itself.
void begin_second_version(const TestDatabase& test_database) {
  const auto second = schema::status(test_database.url()).versions.at(1);
  Admin(test_database)
      .run("INSERT INTO " + history +
           " (version, name, checksum, state, steps_done, steps_total, min_client, "
           "started_at, tool_version, applied_by) VALUES (2, '" +
           second.name + "', '" + second.checksum + "', 'failed', 0, 3, '0.1.0', 1, '0.1.0', 'somebody')");
}

}  // namespace

TEST_CASE("a table without a history is adopted at its version, and is then like any other") {
  const LaterVersions versions;
  Database database;
  const auto latest = schema::status(database.url()).latest;
  database.admin().run("DROP TABLE " + history);
  CHECK_MESSAGE(names(schema::check(database.url()).hint, "dlock-migrate baseline --at " + std::to_string(latest)),
                schema::check(database.url()).hint);

  const auto simulated = schema::baseline(database.url(), latest, dry());
  CHECK(simulated.state == SchemaState::good);
  CHECK_MESSAGE(names(simulated.plan, "'baseline'"), simulated.plan);
  CHECK_FALSE(schema::status(database.url()).history_exists);

  const auto report = schema::baseline(database.url(), latest);
  CHECK_MESSAGE(report.state == SchemaState::good, report.message);
  CHECK(report.versions.size() == static_cast<std::size_t>(latest));
  CHECK(schema::check(database.url()).state == SchemaState::good);
  CHECK(schema::up(database.url()).versions.empty());
  CHECK(schema::baseline(database.url(), latest).versions.empty());
  CHECK(database.admin().number("SELECT count(*) FROM " + history + " WHERE state = 'baseline'") == latest);
  CHECK(schema::down(database.url(), 1).state == SchemaState::good);
  CHECK(schema::status(database.url()).current == 1);
  CHECK(schema::up(database.url()).state == SchemaState::good);
  CHECK(schema::check(database.url()).state == SchemaState::good);
}

TEST_CASE("a history that is there and empty does not stand in the way") {
  const LaterVersions versions;
  Database database;
  const auto latest = schema::status(database.url()).latest;
  database.admin().run("DELETE FROM " + history);
  CHECK(schema::up(database.url()).state == SchemaState::drift);
  CHECK(schema::baseline(database.url(), latest).state == SchemaState::good);
  CHECK(schema::check(database.url()).state == SchemaState::good);
}

TEST_CASE("a table is not adopted as what it is not, and what it is is named") {
  const LaterVersions versions;
  Database database;
  const auto latest = schema::status(database.url()).latest;
  database.admin().run("DROP TABLE " + history);
  const auto other = schema::baseline(database.url(), 1);
  CHECK(other.state == SchemaState::drift);
  CHECK_MESSAGE(names(other.hint, "baseline --at " + std::to_string(latest)), other.hint);
  CHECK_FALSE(schema::status(database.url()).history_exists);

  database.admin().run("ALTER TABLE resource_lock ADD COLUMN extra INTEGER");
  const auto refused = schema::baseline(database.url(), latest);
  CHECK(refused.state == SchemaState::drift);
  CHECK_MESSAGE(names(refused.message, "resource_lock.extra"), refused.message);
  CHECK_FALSE(schema::status(database.url()).history_exists);
  CHECK(schema::baseline(database.url(), latest, careless()).state == SchemaState::good);
  CHECK(schema::check(database.url()).state == SchemaState::drift);
}

TEST_CASE("baseline is for a table that is there, and has no history") {
  const LaterVersions versions;
  const auto test_database = opener().test_database();
  REQUIRE(schema::up(test_database->url()).state == SchemaState::good);
  const auto latest = schema::status(test_database->url()).latest;
  const auto thrown = thrown_by([&] { static_cast<void>(schema::baseline(test_database->url(), latest)); });
  CHECK(thrown.fault == Fault::misuse);
  CHECK(thrown.names("history"));
  CHECK(thrown_by([&] { static_cast<void>(schema::baseline(test_database->url(), 900)); }).fault == Fault::misuse);
  REQUIRE(schema::down(test_database->url(), 0).state == SchemaState::good);
  const auto nothing = schema::baseline(test_database->url(), latest);
  CHECK(nothing.state == SchemaState::drift);
  CHECK_MESSAGE(names(nothing.hint, "dlock-migrate up"), nothing.hint);
  CHECK_FALSE(schema::status(test_database->url()).history_exists);
}

TEST_CASE("a version that was finished by hand is marked as applied") {
  const LaterVersions versions;
  Database database;
  auto& admin = database.admin();
  const auto mend = [&](int version) {
    const auto state = schema::check(database.url()).state;
    CHECK_MESSAGE((state == SchemaState::drift || state == SchemaState::interrupted), schema::to_string(state));
    CHECK(schema::mark_applied(database.url(), version, dry()).versions.size() == 1);
    CHECK(schema::check(database.url()).state == state);
    const auto report = schema::mark_applied(database.url(), version);
    CHECK_MESSAGE(report.state == SchemaState::good, report.message);
    CHECK(schema::check(database.url()).state == SchemaState::good);
  };
  admin.run("UPDATE " + history + " SET state = 'failed', error = 'a mishap' WHERE version = 2");
  mend(2);
  admin.run("UPDATE " + history + " SET checksum = 's1:0' WHERE version = 1");
  mend(1);
  admin.run("DELETE FROM " + history + " WHERE version = 1");
  mend(1);
  CHECK(schema::mark_applied(database.url(), 2).versions.empty());

  admin.run("UPDATE " + history + " SET state = 'failed' WHERE version = 2");
  admin.run("ALTER TABLE resource_lock ADD COLUMN extra INTEGER");
  CHECK(schema::mark_applied(database.url(), 2).state == SchemaState::drift);
  CHECK(schema::status(database.url()).state == SchemaState::interrupted);
}

TEST_CASE("a version that was not begun, or taken back by hand, is discarded") {
  const LaterVersions versions;
  const auto test_database = opener().test_database();
  REQUIRE(schema::up(test_database->url(), {}, 1).state == SchemaState::good);
  Admin admin(*test_database);
  begin_second_version(*test_database);
  CHECK(schema::discard(test_database->url(), 2, dry()).versions.size() == 1);
  CHECK(admin.number("SELECT count(*) FROM " + history) == 2);
  const auto report = schema::discard(test_database->url(), 2);
  CHECK_MESSAGE(report.state == SchemaState::good, report.message);
  CHECK(schema::check(test_database->url()).state == SchemaState::pending);
  CHECK(schema::discard(test_database->url(), 2).versions.empty());
  CHECK(thrown_by([&] { static_cast<void>(schema::discard(test_database->url(), 1)); }).fault == Fault::misuse);
  REQUIRE(schema::up(test_database->url()).state == SchemaState::good);

  const auto latest = schema::status(test_database->url()).latest;
  admin.run("UPDATE " + history + " SET state = 'failed' WHERE version = " + std::to_string(latest));
  const auto refused = schema::discard(test_database->url(), latest);
  CHECK(refused.state == SchemaState::drift);
  CHECK_MESSAGE(names(refused.message, "version " + std::to_string(latest)), refused.message);
  CHECK(admin.number("SELECT count(*) FROM " + history) == latest);
}

TEST_CASE("while another migrator is at work, the history is left alone") {
  const LaterVersions versions;
  Database database;
  database.admin().run("UPDATE " + history +
                       " SET state = 'running', owner = 'somebody', applied_by = 'deploy@host7', "
                       "lease_until = 9000000000000000 WHERE version = 2");
  schema::Options options;
  options.timeouts.lock = std::chrono::milliseconds{50};
  for (const auto& report : {schema::mark_applied(database.url(), 2, options),
                             schema::discard(database.url(), 2, options), schema::repair(database.url(), options)}) {
    CHECK(report.state == SchemaState::locked);
    CHECK_MESSAGE(names(report.message, "deploy@host7"), report.message);
  }
  CHECK(database.admin().text("SELECT owner FROM " + history + " WHERE version = 2") == "somebody");
}

TEST_CASE("where nothing is half done, repair does nothing") {
  const LaterVersions versions;
  const auto test_database = opener().test_database();
  REQUIRE(schema::up(test_database->url(), {}, 1).state == SchemaState::good);
  const auto report = schema::repair(test_database->url());
  CHECK(report.state == SchemaState::good);
  CHECK(report.versions.empty());
  CHECK_MESSAGE(names(report.message, "dlock-migrate up"), report.message);
  CHECK(schema::status(test_database->url()).current == 1);
}
