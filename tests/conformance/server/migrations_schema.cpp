// Promises of schemas and names: a missing schema is made when that is asked for, and only then; names that differ in
// case only are two.
#include "support/database.hpp"
#include "support/later_versions.hpp"
#include "support/server_url.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

using namespace dlock;
using namespace dlock::test;
using schema::SchemaState;

TEST_CASE("a missing schema is refused with the statement that makes it, or made with --create-schema") {
  const auto test_database = opener().server_database();
  schema::Options options;
  options.schema = "dlock_made_" + unique_suffix();
  const auto refused = thrown_by([&] { static_cast<void>(schema::up(test_database->url(), options)); });
  CHECK(refused.fault == Fault::misuse);
  CHECK_MESSAGE(refused.names("CREATE"), refused.text);
  CHECK_MESSAGE(refused.names(options.schema), refused.text);
  CHECK(thrown_by([&] { static_cast<void>(schema::plan(test_database->url(), options)); }).fault == Fault::misuse);
  CHECK(schema::check(test_database->url(), options).state == SchemaState::pending);

  options.create_schema = true;
  const auto plan = schema::plan(test_database->url(), options);
  CHECK_MESSAGE(plan.plan.find("CREATE") < plan.plan.find("CREATE TABLE"), plan.plan);
  const auto made = schema::up(test_database->url(), options);
  CHECK_MESSAGE(made.state == SchemaState::good, made.message);
  CHECK(schema::check(test_database->url(), options).state == SchemaState::good);
  {
    EngineOptions engine_options;
    engine_options.schema = options.schema;
    engine_options.timeouts.release = std::chrono::seconds{10} * slowness();
    Engine engine(test_database->url(), engine_options);
    CHECK(engine.try_lock("job")->release() == Released::freed);
  }
  CHECK(schema::check(test_database->url()).state == SchemaState::pending);
  CHECK(schema::down(test_database->url(), 0, options).state == SchemaState::good);
  Admin(*test_database).run("DROP SCHEMA " + options.schema);
}

TEST_CASE("tables whose names differ in case only are two, and neither is drift to the other") {
  const LaterVersions versions;
  const auto test_database = opener().server_database();
  schema::Options lower, upper;
  lower.table = "order_lock";
  upper.table = "Order_Lock";
  REQUIRE(schema::up(test_database->url(), lower).state == schema::SchemaState::good);
  const auto alone = schema::dump(test_database->url(), lower);
  REQUIRE(schema::up(test_database->url(), upper).state == schema::SchemaState::good);
  for (const auto& options : {lower, upper}) {
    CAPTURE(options.table);
    const auto report = schema::check(test_database->url(), options);
    CHECK_MESSAGE(report.state == schema::SchemaState::good, report.message);
    CHECK(schema::dump(test_database->url(), options).lines == alone.lines);
    CHECK(schema::dump(test_database->url(), options).details.size() == alone.details.size());
    CHECK(schema::up(test_database->url(), options).versions.empty());
  }
  REQUIRE(schema::down(test_database->url(), 1, upper).state == schema::SchemaState::good);
  REQUIRE(schema::up(test_database->url(), upper).state == schema::SchemaState::good);
  CHECK(schema::dump(test_database->url(), upper).lines == alone.lines);
}
