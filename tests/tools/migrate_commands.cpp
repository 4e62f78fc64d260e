// What dlock-migrate promises to scripts: exit codes, streams, JSON.
#include "migrate.hpp"
#include "support/database.hpp"
#include "support/json.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

using namespace dlock;
using namespace dlock::test;

TEST_CASE("up, status, check and down end with the promised codes") {
  const auto test_database = opener().test_database();
  const auto url = test_database->url();
  CHECK(migrate({"check", "-u", url}).code == 3);
  CHECK(migrate({"status", "-u", url}).code == 0);
  CHECK(migrate({"status", "--exit-code", "-u", url}).code == 3);
  const auto made = migrate({"up", "-u", url});
  CHECK(made.code == 0);
  CHECK_MESSAGE(made.says("version 1 applied"), made.out);
  const auto again = migrate({"up", "-u", url});
  CHECK(again.code == 0);
  CHECK_MESSAGE(again.says("nothing to do"), again.out);
  CHECK(migrate({"up", "-q", "-u", url}).out.empty());
  CHECK(migrate({"check", "-u", url}).code == 0);
  CHECK(migrate({"status", "--exit-code", "-u", url}).code == 0);
  CHECK(migrate({"down", "-u", url, "--to", "0"}).code == 2);  // off a terminal it needs --yes
  CHECK(migrate({"check", "-u", url}).code == 0);
  CHECK(migrate({"down", "-u", url, "--to", "0", "--yes"}).code == 0);
  CHECK(migrate({"check", "-u", url}).code == 3);
}

TEST_CASE("drift, interruption, another migrator and a newer table have codes of their own") {
  Database database;
  auto& admin = database.admin();
  const std::vector<std::string> at{"-u", database.url(), "--lock-timeout", "100ms"};
  const auto code = [&](std::string command) {
    std::vector<std::string> arguments{std::move(command)};
    arguments.insert(arguments.end(), at.begin(), at.end());
    return migrate(arguments).code;
  };
  const auto checksum = admin.text("SELECT checksum FROM resource_lock_schema_history WHERE version = 1");
  admin.run("UPDATE resource_lock_schema_history SET checksum = 's1:0' WHERE version = 1");
  CHECK(code("check") == 4);
  CHECK(code("up") == 4);
  admin.run("UPDATE resource_lock_schema_history SET checksum = '" + checksum +
            "', state = 'failed' WHERE version = 1");
  CHECK(code("check") == 5);
  admin.run(
      "UPDATE resource_lock_schema_history SET state = 'running', lease_until = 9000000000000000 WHERE version = 1");
  CHECK(code("check") == 3);
  CHECK(code("up") == 6);
  admin.run("UPDATE resource_lock_schema_history SET state = 'applied', min_client = '99.0.0'");
  CHECK(code("check") == 7);
  CHECK(code("up") == 7);
}

TEST_CASE("repair makes the view anew where it is missing, check says so, and what else is different stays as it is") {
  Database database;
  auto& admin = database.admin();
  const auto dump = schema::dump(database.url());
  admin.run("DROP VIEW resource_lock_status");
  const auto checked = migrate({"check", "-u", database.url()});
  CHECK(checked.code == 4);
  CHECK_MESSAGE(checked.says("the view resource_lock_status is missing; run \"dlock-migrate repair\""), checked.out);
  const auto planned = migrate({"repair", "--dry-run", "-u", database.url()});
  CHECK(planned.code == 0);
  CHECK_MESSAGE(planned.says("VIEW "), planned.out);
  CHECK(migrate({"check", "-u", database.url()}).code == 4);
  const auto repaired = migrate({"repair", "-u", database.url()});
  CHECK(repaired.code == 0);
  CHECK_MESSAGE(repaired.says("view resource_lock_status made anew"), repaired.out);
  CHECK(migrate({"check", "-u", database.url()}).code == 0);
  CHECK(schema::dump(database.url()).details == dump.details);
  CHECK(migrate({"repair", "-u", database.url()}).says("nothing to do"));
  admin.run("DROP VIEW resource_lock_status");
  admin.run("ALTER TABLE resource_lock ADD COLUMN colour INTEGER");
  const auto refused = migrate({"repair", "-u", database.url()});
  CHECK(refused.code == 4);
  CHECK_MESSAGE(refused.says("colour"), refused.out);
  CHECK(migrate({"check", "-u", database.url()}).says("the view resource_lock_status is missing"));
}

TEST_CASE("a table of another program is left alone, and its name is a reason to take another") {
  const auto test_database = opener().test_database();
  Admin admin(*test_database);
  admin.run("CREATE TABLE resource_lock (id INTEGER)");
  for (const auto& command :
       std::vector<std::vector<std::string>>{{"up"}, {"check"}, {"repair"}, {"baseline", "--at", "1"}}) {
    auto at = command;
    at.insert(at.end(), {"-u", test_database->url()});
    const auto ran = migrate(at);
    CHECK_MESSAGE(ran.code == 4, ran.out);
    CHECK_MESSAGE(ran.says("name another table with --table"), ran.out);
  }
  CHECK(migrate({"up", "--table", "leases", "-q", "-u", test_database->url()}).code == 0);
  CHECK(migrate({"check", "--table", "leases", "-u", test_database->url()}).code == 0);
}

TEST_CASE("check --wait ends as soon as the table is there") {
  const auto test_database = opener().test_database();
  auto waiting = migrate_child({"check", "--wait", "60", "-v", "-u", test_database->url()});
  CHECK(waiting.line());  // it has looked once, and found nothing
  Engine::install_schema(test_database->url());
  const auto ran = finish(waiting);
  CHECK(ran.code == 0);
  CHECK_MESSAGE(ran.says("ok"), ran.out);
}

TEST_CASE("JSON is one object on standard output, with a version") {
  Database database;
  for (const std::string command : {"status", "check", "up"}) {
    const auto ran = migrate({command, "--format", "json", "-u", database.url()}, {}, "2>/dev/null");
    CHECK(ran.code == 0);
    const auto object = Json::parse(ran.out);
    CHECK(object["format_version"] == 1);
    CHECK(ran.lines() == 1);
  }
  const auto status = Json::parse(migrate({"status", "--format", "json", "-u", database.url()}).out);
  CHECK(status["current"] == status["latest"]);
  CHECK(status["versions"][0]["state"] == "applied");

  database.admin().run("UPDATE resource_lock_schema_history SET checksum = 's1:0'");
  const auto ran = migrate({"check", "--format", "json", "-u", database.url()});
  CHECK(ran.code == 4);
  const auto error = Json::parse(ran.out)["error"];
  CHECK(error["code"] == "drift");
  CHECK_FALSE(error["message"].text().empty());
  CHECK(error.contains("hint"));
  CHECK(migrate({"check", "--format", "json", "-u", database.url()}, {}, "2>/dev/null").out.empty());
}

TEST_CASE("the URL comes from -u, then -e, then DLOCK_MIGRATE_URL, then DLOCK_URL, and from nowhere else") {
  Database database;
  const auto url = database.url();
  const std::string wrong = "nonsense:x";
  CHECK(migrate({"check"}, {"DLOCK_URL=" + url}).code == 0);
  CHECK(migrate({"check"}, {"DLOCK_MIGRATE_URL=" + url, "DLOCK_URL=" + wrong}).code == 0);
  CHECK(migrate({"check", "-e", "MY_URL"}, {"MY_URL=" + url, "DLOCK_MIGRATE_URL=" + wrong}).code == 0);
  CHECK(migrate({"check", "-u", url, "-e", "MY_URL"}, {"MY_URL=" + wrong}).code == 0);
  CHECK(migrate({"check"}, {"DATABASE_URL=" + url}).code == 2);
  CHECK(migrate({"check", "-e", "DATABASE_URL"}, {"DATABASE_URL=" + url}).code == 0);
}

TEST_CASE("sql prints both ways without a database") {
  const auto name = std::string(opener().name);
  const auto up = migrate({"sql", "--dialect", name});
  CHECK(up.code == 0);
  CHECK_MESSAGE(up.says("CREATE TABLE"), up.out);
  CHECK_MESSAGE(up.says("resource_lock_schema_history"), up.out);
  const auto bare = migrate({"sql", "--dialect", name, "--no-history", "--table", "mine"});
  CHECK_FALSE(bare.says("schema_history"));
  CHECK(bare.says("mine_status"));
  const auto down = migrate({"sql", "--dialect", name, "--down"});
  CHECK_MESSAGE(down.says("DROP TABLE"), down.out);
  CHECK(migrate({"sql", "--dialect", name, "--from", "1"}).code == 0);
  CHECK(migrate({"sql", "--dialect", name, "--from", "1", "--to", "0"}).code == 2);
  const auto unknown = migrate({"sql", "--dialect", name, "--from", "5"});
  CHECK(unknown.code == 2);
  CHECK_MESSAGE(unknown.says("the version 5 does not exist"), unknown.out);
}
