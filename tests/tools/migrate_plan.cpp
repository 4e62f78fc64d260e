// What plan and --dry-run promise: the statements that would be run, and nothing else.
#include "migrate.hpp"
#include "support/database.hpp"

#include "api/open.hpp"
#include "support/json.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

using namespace dlock;
using namespace dlock::test;

namespace {

// As a person with a client of the database would.
void run_by_hand(const TestDatabase& test_database, const std::string& script) {
  dialects::ConnectOptions options;
  options.create = true;
  options.prepared_statements = false;
  const auto deadline = later(BootClock::now(), std::chrono::seconds{30});
  api::resolve(test_database.url(), options).connector->connect(deadline)->script(script, deadline);
}

bool in_order(const std::string& text, std::initializer_list<std::string_view> words) {
  std::size_t at = 0;
  for (const auto word : words) {
    at = text.find(word, at);
    if (at == std::string::npos) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("what plan prints is what up does: applied by hand it makes the same tables and the same history") {
  const LaterVersions versions;
  const auto test_database = opener().test_database();
  const auto url = test_database->url();
  const auto planned = migrate({"plan", "-u", url}, {}, "2>/dev/null");
  CHECK(planned.code == 0);
  CHECK_MESSAGE(
      in_order(planned.out, {"version 1", "CREATE TABLE", "schema_history", "INSERT INTO", "step 1/", "version 2"}),
      planned.out);
  CHECK(schema::check(url).state == schema::SchemaState::pending);
  const auto without_owner = [](std::string text) {  // each migrator signs with a random one
    for (std::size_t at = text.find_first_of("0123456789abcdef"); at != std::string::npos;
         at = text.find_first_of("0123456789abcdef", at + 1)) {
      const auto end = std::min(text.find_first_not_of("0123456789abcdef", at), text.size());
      if (end - at == 32) text.erase(at, 32);
      else at = end - 1;
    }
    return text;
  };
  CHECK(without_owner(migrate({"up", "--dry-run", "-u", url}, {}, "2>/dev/null").out) == without_owner(planned.out));

  run_by_hand(*test_database, migrate({"plan", "--to", "1", "-u", url}, {}, "2>/dev/null").out);
  CHECK(schema::status(url).current == 1);
  const auto rest = migrate({"plan", "-u", url}, {}, "2>/dev/null");
  CHECK_MESSAGE(rest.out.find("version 1:") == std::string::npos, rest.out);
  run_by_hand(*test_database, rest.out);
  CHECK(schema::check(url).state == schema::SchemaState::good);
  const auto nothing = migrate({"plan", "-u", url});
  CHECK(nothing.code == 0);
  CHECK_MESSAGE(nothing.says("nothing to do"), nothing.out);
  CHECK(migrate({"up", "-u", url}).says("nothing to do"));

  run_by_hand(*test_database, migrate({"down", "--to", "0", "--dry-run", "-u", url}, {}, "2>/dev/null").out);
  CHECK_FALSE(schema::status(url).table_exists);
  CHECK_FALSE(schema::status(url).history_exists);
}

TEST_CASE("a dry run refuses what the real one would refuse, with the same code") {
  const LaterVersions versions;
  Database database;
  const auto url = database.url();
  auto engine = database.engine();
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  CHECK(migrate({"down", "--to", "0", "--dry-run", "-u", url}).code == 6);
  const auto forced = migrate({"down", "--to", "0", "--force", "--dry-run", "-u", url});
  CHECK(forced.code == 0);
  CHECK_MESSAGE(forced.says("DROP TABLE"), forced.out);
  lock->check();
  CHECK(lock->release() == Released::freed);
  auto& admin = database.admin();
  admin.run(
      "UPDATE resource_lock_schema_history SET state = 'running', lease_until = 9000000000000000 WHERE version = 2");
  CHECK(migrate({"plan", "-u", url}).code == 6);
  admin.run("UPDATE resource_lock_schema_history SET state = 'applied', checksum = 's1:0' WHERE version = 2");
  CHECK(migrate({"plan", "-u", url}).code == 4);
  admin.run("UPDATE resource_lock_schema_history SET min_client = '99.0.0' WHERE version = 2");
  CHECK(migrate({"plan", "-u", url}).code == 7);
}

TEST_CASE("a plan as JSON is one object with the statements in it") {
  const auto test_database = opener().test_database();
  const auto ran = migrate({"plan", "--format", "json", "-u", test_database->url()}, {}, "2>/dev/null");
  CHECK(ran.code == 0);
  const auto plan = Json::parse(ran.out);
  CHECK(plan["format_version"] == 1);
  CHECK(plan["dry_run"] == true);
  CHECK(plan["from"] == 0);
  CHECK(plan["versions"].size() == plan["to"]);
  CHECK(plan["sql"].text().find("CREATE TABLE") != std::string::npos);
}

TEST_CASE("--no-lock migrates without the migrators' lock, and warns") {
  const auto test_database = opener().test_database();
  CHECK_FALSE(migrate({"plan", "--no-lock", "-u", test_database->url()}).says("_lock("));
  const auto ran = migrate({"up", "--no-lock", "-u", test_database->url()});
  CHECK(ran.code == 0);
  CHECK_MESSAGE(ran.says("warning: --no-lock"), ran.out);
  CHECK(schema::check(test_database->url()).state == schema::SchemaState::good);
}
