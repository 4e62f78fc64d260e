// The table of exit codes of dlock-migrate, row by row.
#include "migrate.hpp"
#include "support/database.hpp"
#include "support/json.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

using namespace dlock;
using namespace dlock::test;

namespace {

const std::string history = "resource_lock_schema_history";

// The code, with one JSON object on standard error that has this word, a message, and says what to do next.
void check_exit(int code, const std::string& word, std::vector<std::string> arguments) {
  CAPTURE(arguments.front());
  arguments.insert(arguments.end(), {"--format", "json", "--lock-timeout", "100ms"});
  const auto ran = migrate(arguments, {}, "2>&1 >/dev/null </dev/null");
  CHECK_MESSAGE(ran.code == code, ran.out);
  REQUIRE_MESSAGE(ran.lines() == 1, ran.out);
  const auto object = Json::parse(ran.out);
  CHECK(object["format_version"] == 1);
  const auto& error = object["error"];
  CHECK(error["code"] == word);
  const auto text = error["message"].text() + error["hint"].text();
  CHECK_MESSAGE(text.size() > 20, text);
}

// A database that cannot be reached, and one where this role may not do it.
std::string unreachable(const TestDatabase& test_database) {
  return opener().server_database == nullptr ? test_database.url() + "/not/there"
                                             : opener().server_database()->url_at({"127.0.0.1", 1});
}

}  // namespace

TEST_CASE("0: done, or nothing to do, or nothing found wrong") {
  const auto test_database = opener().test_database();
  for (const std::string command : {"plan", "up", "up", "check", "status", "repair", "dump"})
    CHECK_MESSAGE(migrate({command, "-u", test_database->url()}).code == 0, command);
}

TEST_CASE("1: a step fails; it is said which, what is committed, and how to go on; and that works") {
  const LaterVersions versions;
  const auto test_database = opener().test_database();
  const auto url = test_database->url();
  REQUIRE(migrate({"up", "--to", "1", "-q", "-u", url}).code == 0);
  Admin admin(*test_database);
  admin.run("DROP VIEW resource_lock_status");
  admin.run("CREATE TABLE resource_lock_status (in_the_way INTEGER)");
  check_exit(1, "database", {"up", "-u", url});
  const auto ran = migrate({"up", "-u", url});
  CHECK_MESSAGE(ran.says("of version 2 failed on "), ran.out);
  CHECK_MESSAGE(ran.says("nothing to undo"), ran.out);
  CHECK_MESSAGE(ran.says("run \"dlock-migrate up\" again. Cause: "), ran.out);
  admin.run("DROP TABLE resource_lock_status");
  if (schema::status(url).state !=
      schema::SchemaState::interrupted)  // there the view is dropped before it is made anew
    admin.run("CREATE VIEW resource_lock_status AS SELECT name FROM resource_lock");
  CHECK(migrate({"up", "-u", url}).code == 0);
  CHECK(migrate({"check", "-u", url}).code == 0);
}

TEST_CASE("2: usage") {
  const auto test_database = opener().test_database();
  check_exit(2, "usage", {"up", "-u", test_database->url(), "--to", "900"});
  check_exit(2, "usage", {"baseline", "-u", test_database->url(), "--at", "0"});
  check_exit(2, "usage", {"repair", "-u", test_database->url(), "--no-verify"});
  check_exit(2, "usage", {"down", "-u", test_database->url(), "--to", "0"});
}

TEST_CASE("3: pending") {
  const auto test_database = opener().test_database();
  check_exit(3, "pending", {"check", "-u", test_database->url()});
  CHECK(migrate({"status", "--exit-code", "-u", test_database->url()}).code == 3);
}

TEST_CASE("4, 5, 7: drift, interrupted, incompatible") {
  const LaterVersions versions;
  Database database;
  const auto url = database.url();
  auto& admin = database.admin();
  const auto checksum = admin.text("SELECT checksum FROM " + history + " WHERE version = 2");
  admin.run("UPDATE " + history + " SET checksum = 's1:0' WHERE version = 2");
  for (const std::string command : {"check", "up", "plan"}) check_exit(4, "drift", {command, "-u", url});
  admin.run("UPDATE " + history + " SET checksum = '" + checksum + "', state = 'failed' WHERE version = 2");
  check_exit(5, "interrupted", {"check", "-u", url});
  CHECK(migrate({"status", "--exit-code", "-u", url}).code == 5);
  admin.run("UPDATE " + history + " SET state = 'applied', min_client = '99.0.0' WHERE version = 2");
  for (const std::string command : {"check", "up", "plan", "repair"})
    check_exit(7, "incompatible", {command, "-u", url});
}

TEST_CASE("6: another migrator is at work, or the table's locks are not obtained") {
  const LaterVersions versions;
  const auto test_database = opener().test_database();
  const auto url = test_database->url();
  REQUIRE(migrate({"up", "--to", "1", "-q", "-u", url}).code == 0);
  {
    Admin other(*test_database);
    other.block("");
    check_exit(6, "locked", {"up", "-u", url, "--ddl-lock-timeout", "100ms", "--ddl-retries", "0"});
    other.unblock();
  }
  REQUIRE(migrate({"up", "-q", "-u", url}).code == 0);
  Admin(*test_database)
      .run("UPDATE " + history +
           " SET state = 'running', applied_by = 'deploy@host7', "
           "lease_until = 9000000000000000 WHERE version = 2");
  check_exit(6, "locked", {"up", "-u", url});
  CHECK(migrate({"up", "-u", url, "--lock-timeout", "100ms"}).says("deploy@host7"));
}

TEST_CASE("8, 9: unreachable, permission denied") {
  const LaterVersions versions;
  const auto test_database = opener().test_database();
  check_exit(8, "unreachable", {"check", "-u", unreachable(*test_database), "--connect-timeout", "2"});
  REQUIRE(migrate({"up", "--to", "1", "-q", "-u", test_database->url()}).code == 0);
  if (opener().server_database == nullptr) {
    check_exit(9, "permission", {"up", "-u", test_database->url() + "?mode=ro"});
    return;
  }
  const auto server = opener().server_database();
  const auto ran = migrate({"up", "-u", server->url_of_role({"SELECT"})});
  CHECK_MESSAGE(ran.code == 9, ran.out);
  CHECK_MESSAGE(ran.says("GRANT"), ran.out);
}
