// Promises of schemas and names: a missing schema is made when that is asked for, and only then; names that differ in
// case only are two.
#include "support/database.hpp"
#include "support/later_versions.hpp"
#include "support/server_url.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

using namespace dlock;
using namespace dlock::test;
using schema::Verdict;

TEST_CASE("a missing schema is refused with the statement that makes it, or made with --create-schema") {
  const auto place = opener().server_place();
  schema::Options options;
  options.schema = "dlock_made_" + unique_suffix();
  const auto refused = thrown_by([&] { static_cast<void>(schema::up(place->url(), options)); });
  CHECK(refused.fault == Fault::misuse);
  CHECK_MESSAGE(refused.names("CREATE"), refused.text);
  CHECK_MESSAGE(refused.names(options.schema), refused.text);
  CHECK(thrown_by([&] { static_cast<void>(schema::plan(place->url(), options)); }).fault == Fault::misuse);
  CHECK(schema::check(place->url(), options).verdict == Verdict::pending);

  options.create_schema = true;
  const auto plan = schema::plan(place->url(), options);
  CHECK_MESSAGE(plan.plan.find("CREATE") < plan.plan.find("CREATE TABLE"), plan.plan);
  const auto made = schema::up(place->url(), options);
  CHECK_MESSAGE(made.verdict == Verdict::good, made.message);
  CHECK(schema::check(place->url(), options).verdict == Verdict::good);
  {
    EngineOptions engine_options;
    engine_options.schema = options.schema;
    Engine engine(place->url(), engine_options);
    CHECK(engine.try_lock("job")->release() == Released::freed);
  }
  CHECK(schema::check(place->url()).verdict == Verdict::pending);
  CHECK(schema::down(place->url(), 0, options).verdict == Verdict::good);
  Admin(*place).run("DROP SCHEMA " + options.schema);
}

TEST_CASE("tables whose names differ in case only are two, and neither is drift to the other") {
  const LaterVersions versions;
  const auto place = opener().server_place();
  schema::Options lower, upper;
  lower.table = "order_lock";
  upper.table = "Order_Lock";
  REQUIRE(schema::up(place->url(), lower).verdict == schema::Verdict::good);
  const auto alone = schema::dump(place->url(), lower);
  REQUIRE(schema::up(place->url(), upper).verdict == schema::Verdict::good);
  for (const auto& options : {lower, upper}) {
    CAPTURE(options.table);
    const auto report = schema::check(place->url(), options);
    CHECK_MESSAGE(report.verdict == schema::Verdict::good, report.message);
    CHECK(schema::dump(place->url(), options).lines == alone.lines);
    CHECK(schema::dump(place->url(), options).details.size() == alone.details.size());
    CHECK(schema::up(place->url(), options).versions.empty());
  }
  REQUIRE(schema::down(place->url(), 1, upper).verdict == schema::Verdict::good);
  REQUIRE(schema::up(place->url(), upper).verdict == schema::Verdict::good);
  CHECK(schema::dump(place->url(), upper).lines == alone.lines);
}
