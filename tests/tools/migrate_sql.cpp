// The promise that printed statements can be applied by the database's own client, and then pass check.
#include "migrate.hpp"
#include "support/database.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

using namespace dlock;
using namespace dlock::test;
using schema::SchemaState;

namespace {

// dlock-migrate with these arguments, its output through the client.
void through_client(const TestDatabase& test_database, const std::string& arguments) {
  const TemporaryFolder folder;
  const std::string script = folder.path() + "/script.sql";
  Child child({"/bin/sh", "-c",
               "{ " + migrate_tool() + " " + arguments + " >" + script + " && " + test_database.client() + " <" +
                   script + " >/dev/null; } 2>&1"});
  const auto ran = finish(child);
  CHECK_MESSAGE(ran.code == 0, arguments << ": " << ran.out);
}

}  // namespace

TEST_CASE("printed statements make, upgrade and take back the same tables as the commands do") {
  const LaterVersions versions;
  const auto test_database = opener().test_database();
  const auto url = test_database->url();
  const auto sql = "sql --dialect " + std::string(opener().name);
  const auto latest = std::to_string(schema::latest(opener().name));
  through_client(*test_database, sql);
  CHECK(schema::check(url).state == SchemaState::good);
  CHECK(migrate({"check", "-q", "-u", url}).code == 0);
  CHECK(migrate({"up", "-u", url}).says("nothing to do"));
  through_client(*test_database, sql + " --down --to 1");
  CHECK(schema::status(url).current == 1);
  through_client(*test_database, sql + " --from 1 --to " + latest);
  CHECK(schema::check(url).state == SchemaState::good);
  through_client(*test_database, sql + " --down");
  CHECK_FALSE(schema::status(url).table_exists);
  CHECK_FALSE(schema::status(url).history_exists);
}

TEST_CASE("without the history the engine works, and the table can be adopted") {
  const auto test_database = opener().test_database();
  const auto url = test_database->url();
  through_client(*test_database, "sql --no-history --dialect " + std::string(opener().name));
  CHECK_FALSE(schema::status(url).history_exists);
  {
    Engine engine(url, {.timeouts = {.release = std::chrono::seconds{30}}});
    CHECK(engine.try_lock("job")->release() == Released::freed);
  }
  const auto ran = migrate({"baseline", "--at", std::to_string(schema::latest(opener().name)), "-u", url});
  CHECK_MESSAGE(ran.code == 0, ran.out);
  CHECK(schema::check(url).state == SchemaState::good);
}

TEST_CASE("what plan prints can be run by the client too") {
  const LaterVersions versions;
  const auto test_database = opener().test_database();
  const auto url = test_database->url();
  through_client(*test_database, "plan -u '" + url + "'");
  CHECK(schema::check(url).state == SchemaState::good);
  through_client(*test_database, "down --to 1 --dry-run -u '" + url + "'");
  CHECK(schema::status(url).current == 1);
}
