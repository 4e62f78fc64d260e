// The promise that the table is made once, by whoever comes first, and taken back only when nobody minds.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/later_versions.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

#include <atomic>

using namespace dlock;
using namespace dlock::test;
using schema::SchemaState;

TEST_CASE("twenty at once on an empty database: all succeed, and there is one row a version") {
  const LaterVersions versions;
  const auto test_database = opener().test_database();
  std::atomic<int> made = 0;
  in_parallel(20, [&](int) {
    const auto report = schema::up(test_database->url());
    if (report.state != SchemaState::good) throw std::runtime_error(report.message);
    made += static_cast<int>(report.versions.size());
  });
  Admin admin(*test_database);
  const auto latest = schema::status(test_database->url()).latest;
  CHECK(made == latest);
  CHECK(admin.number("SELECT count(*) FROM resource_lock_schema_history") == latest);
  CHECK(admin.number("SELECT count(*) FROM resource_lock") == 1);
  CHECK(schema::check(test_database->url()).state == SchemaState::good);
}

TEST_CASE("a second run does nothing, and says so") {
  const LaterVersions versions;
  Database database;
  const auto before = database.admin().text("SELECT applied_by FROM resource_lock_schema_history");
  const auto report = schema::up(database.url());
  CHECK(report.state == SchemaState::good);
  CHECK(report.versions.empty());
  CHECK(report.from == report.to);
  CHECK(database.admin().text("SELECT applied_by FROM resource_lock_schema_history") == before);
}

TEST_CASE("down and up again: the table is gone, then new") {
  const LaterVersions versions;
  Database database;
  CHECK(schema::down(database.url(), 0).state == SchemaState::good);
  const auto status = schema::status(database.url());
  CHECK_FALSE(status.table_exists);
  CHECK_FALSE(status.history_exists);
  CHECK(schema::down(database.url(), 0).versions.empty());
  CHECK(schema::up(database.url()).versions.size() == static_cast<std::size_t>(status.latest));
}

TEST_CASE("down refuses while a lease is live, unless forced") {
  const LaterVersions versions;
  Database database;
  {
    auto engine = database.engine();
    auto lock = engine.try_lock("job");
    REQUIRE(lock);
    const auto refused = schema::down(database.url(), 0);
    CHECK(refused.state == SchemaState::locked);
    CHECK(refused.message.find("1 live lease") != std::string::npos);
    lock->check();
    CHECK(lock->release() == Released::freed);
    CHECK(engine.try_lock("other", {.renew = false})->token() != Token{});
  }
  CHECK(schema::down(database.url(), 0, {}, true).state == SchemaState::good);
  CHECK(schema::up(database.url()).state == SchemaState::good);
}

TEST_CASE("versions that do not exist are refused before anything is sent") {
  const auto test_database = opener().test_database();
  CHECK(thrown_by([&] { static_cast<void>(schema::up(test_database->url(), {}, 900)); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { static_cast<void>(schema::up(test_database->url(), {}, 0)); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { static_cast<void>(schema::down(test_database->url(), -1)); }).fault == Fault::misuse);
  CHECK(schema::status(test_database->url()).state == SchemaState::pending);
}

TEST_CASE("a migrator that was stopped before it began changes nothing") {
  const auto test_database = opener().test_database();
  std::stop_source stop;
  stop.request_stop();
  schema::Options options;
  options.stop = stop.get_token();
  CHECK(schema::up(test_database->url(), options).state == SchemaState::stopped);
  CHECK(schema::status(test_database->url()).current == 0);
}
