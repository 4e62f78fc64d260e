// What dlock-migrate guard promises to scripts: printed statements, exit codes, JSON.
#include "migrate.hpp"
#include "support/database.hpp"
#include "support/json.hpp"

#include <doctest/doctest.h>
#include <dlock/guard.hpp>

#include <fstream>

using namespace dlock;
using namespace dlock::test;

namespace {

struct Orders {
  Orders() : test_database(opener().test_database()), admin(*test_database) {
    admin.run("CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, last_fence BIGINT, note VARCHAR(20))");
    admin.run("INSERT INTO orders (id, last_fence) VALUES (1, 5)");
  }
  Ran guard(std::vector<std::string> more, const std::string& streams = "2>&1 </dev/null") {
    more.insert(more.begin(), {"guard", "-u", test_database->url(), "--table", "orders", "--column", "last_fence"});
    return migrate(more, {}, streams);
  }
  bool guarded() {
    try {
      admin.run("UPDATE orders SET last_fence = 4 WHERE id = 1");
    } catch (const std::exception&) { return true; }
    admin.run("UPDATE orders SET last_fence = 5 WHERE id = 1");
    return false;
  }
  // The database's own client, with this script.
  void run(const std::string& script) {
    const TemporaryFolder folder;
    const auto path = folder.path() + "/script.sql";
    std::ofstream(path) << script;
    Child child({"/bin/sh", "-c", "{ " + test_database->client() + " <" + path + " >/dev/null; } 2>&1"});
    const auto ran = finish(child);
    CHECK_MESSAGE(ran.code == 0, script << ran.out);
  }

  std::unique_ptr<TestDatabase> test_database;
  Admin admin;
};

}  // namespace

TEST_CASE("guard prints, --apply does it once, --remove takes it away") {
  Orders orders;
  const auto printed = orders.guard({}, "2>/dev/null </dev/null");
  CHECK(printed.code == 0);
  CHECK_MESSAGE(printed.says("CREATE TRIGGER"), printed.out);
  CHECK_FALSE(orders.guarded());
  const auto made = orders.guard({"--apply"});
  CHECK(made.code == 0);
  CHECK_MESSAGE(made.out == "orders.last_fence is guarded\n", made.out);
  CHECK(orders.guarded());
  const auto again = orders.guard({"--apply"});
  CHECK(again.code == 0);
  CHECK_MESSAGE(again.says("nothing to do: orders.last_fence is guarded already"), again.out);
  CHECK(orders.guard({"--remove"}).says("DROP TRIGGER"));
  CHECK(orders.guarded());
  CHECK(orders.guard({"--apply", "--remove"}).says("orders.last_fence is not guarded any more"));
  CHECK_FALSE(orders.guarded());
  const auto gone = orders.guard({"--apply", "--remove"});
  CHECK(gone.code == 0);
  CHECK_MESSAGE(gone.says("nothing to do: orders.last_fence has no guard"), gone.out);
}

TEST_CASE("what guard prints makes in the database's own client what --apply makes, as often as it is run") {
  Orders orders;
  const auto printed = orders.guard({}, "2>/dev/null </dev/null").out;
  for (int times = 0; times < 2; ++times) {
    orders.run(printed);
    CHECK(orders.guarded());
    CHECK(orders.guard({"--apply"}).says("is guarded already"));
  }
  const auto removing = orders.guard({"--remove"}, "2>/dev/null </dev/null").out;
  for (int times = 0; times < 2; ++times) {
    orders.run(removing);
    CHECK_FALSE(orders.guarded());
    CHECK(orders.guard({"--apply", "--remove"}).says("has no guard"));
  }
}

TEST_CASE("without a connection guard prints the same, but for the schema") {
  Orders orders;
  const auto printed =
      migrate({"guard", "--dialect", std::string(opener().name), "--table", "orders", "--column", "last_fence"});
  CHECK(printed.code == 0);
  orders.run(printed.out);
  CHECK(orders.guarded());
  CHECK(orders.guard({"--apply"}).says("is guarded already"));
}

TEST_CASE("a guard that somebody has changed by hand is made anew") {
  Orders orders;
  CHECK(orders.guard({"--apply"}).code == 0);
  // One that never refuses anything, under the same name.
  auto script = orders.guard({}, "2>/dev/null </dev/null").out;
  const std::string condition = "< OLD.";
  for (auto at = script.find(condition); at != std::string::npos; at = script.find(condition, at + 1))
    script.replace(at, condition.size(), "< -OLD.");
  orders.run(script);
  CHECK_FALSE(orders.guarded());
  const auto made = orders.guard({"--apply"});
  CHECK_MESSAGE(made.out == "orders.last_fence is guarded\n", made.out);
  CHECK(orders.guarded());
}

TEST_CASE("guard --format json is one object") {
  Orders orders;
  const auto planned = Json::parse(orders.guard({"--format", "json"}, "2>/dev/null </dev/null").out);
  CHECK(planned["format_version"] == 1);
  CHECK(planned["applied"] == false);
  CHECK(planned["changed"] == false);
  CHECK_FALSE(planned["sql"].text().empty());
  const auto made = Json::parse(orders.guard({"--format", "json", "--apply"}, "2>/dev/null </dev/null").out);
  CHECK(made["changed"] == true);
  const auto again = Json::parse(orders.guard({"--format", "json", "--apply"}, "2>/dev/null </dev/null").out);
  CHECK(again["changed"] == false);
  CHECK(again["applied"] == true);
}

TEST_CASE("guard refuses what it cannot guard with exit 2, and names it") {
  Orders orders;
  const auto url = orders.test_database->url();
  const auto refused = [&](const std::string& table, const std::string& column, std::string_view why) {
    const auto ran = migrate({"guard", "--apply", "-u", url, "--table", table, "--column", column});
    CHECK_MESSAGE(ran.code == 2, table << ": " << ran.out);
    CHECK_MESSAGE(ran.says(why), table << ": " << ran.out);
  };
  refused("invoices", "last_fence", "there is no table \"invoices\"");
  refused("orders", "fence", "the table \"orders\" has no column \"fence\"; it has id, last_fence, note");
  refused("orders", "note", "a fencing token needs a 64-bit integer");
  refused("a.b.c", "last_fence", "has more than two names in it");
  refused("a..c", "last_fence", "has an empty name in it");
  refused("\"orders", "last_fence", "has a quote that is not closed");
  refused("\"orders\"x", "last_fence", "goes on behind a closing quote");
  refused("or\"ders", "last_fence", "has a quote inside of a name");
  const auto twice = migrate({"guard", "-u", url, "--schema", "s", "--table", "s.orders", "--column", "last_fence"});
  CHECK(twice.code == 2);
  CHECK_MESSAGE(twice.says("the schema is named twice"), twice.out);
  CHECK(migrate({"guard", "-u", url, "--column", "last_fence"}).code == 2);
  const auto both = migrate(
      {"guard", "--apply", "--dialect", std::string(opener().name), "--table", "orders", "--column", "last_fence"});
  CHECK(both.code == 2);
  CHECK_MESSAGE(both.says("--apply needs a database"), both.out);
}

TEST_CASE("a table in double quotes may have a dot in its name, and a schema in front of it") {
  const auto test_database = opener().test_database();
  Admin admin(*test_database);
  const auto schema = schema::dump(test_database->url()).schema;
  const auto name = std::string(opener().name);
  const auto printed =
      migrate({"guard", "--dialect", name, "--table", "\"the.schema\".\"ta\"\"b.le\"", "--column", "c.d"});
  CHECK(printed.code == 0);
  CHECK_MESSAGE(printed.says("c.d"), printed.out);
  const auto plain =
      migrate({"guard", "-u", test_database->url(), "--table", schema + ".\"no.table\"", "--column", "c"});
  CHECK(plain.code == 2);
  CHECK_MESSAGE(plain.says("there is no table \"no.table\" in the schema"), plain.out);
}
