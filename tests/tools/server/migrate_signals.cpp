// What a second signal does to a migration that another session's lock holds up.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "tools/migrate.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

#include <csignal>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;

namespace {

// A table at version 1 that a transaction of somebody else keeps from being changed.
struct BlockedTable {
  BlockedTable() {
    REQUIRE(schema::up(test_database->url(), {}, 1).state == schema::SchemaState::good);
    other.emplace(*test_database);
    other->block("");
  }
  std::vector<std::string> up(const std::string& url) const { return {"up", "-u", url, "--ddl-lock-timeout", "10m"}; }
  bool a_step_waits() const {
    return eventually([&] { return test_database->somebody_waits(); });
  }

  std::unique_ptr<ServerTestDatabase> test_database = opener().server_database();
  std::optional<Admin> other;
};

bool line_with(Child& child, std::string_view word) {
  while (const auto line = child.line())
    if (line->find(word) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE(
    "the first signal waits for the step, the second has the server cut it off; what was done is said, and up goes "
    "on") {
  const LaterVersions versions;
  for (const int signal : {SIGINT, SIGTERM}) {
    CAPTURE(signal);
    BlockedTable held;
    auto up = migrate_child(held.up(held.test_database->url()));
    REQUIRE(held.a_step_waits());
    up.signal(signal);
    REQUIRE(line_with(up, "once more to cut it off"));
    CHECK(held.test_database->somebody_waits());
    up.signal(signal);
    const auto ran = finish(up);
    CHECK_MESSAGE(ran.code == 128 + signal, ran.out);
    CHECK_MESSAGE(ran.says("of version 2 was not finished on "), ran.out);
    CHECK_MESSAGE(ran.says("cut off as asked"), ran.out);
    CHECK_MESSAGE((ran.says("nothing to undo") || ran.says("nothing was changed")), ran.out);
    CHECK_MESSAGE(ran.says("run \"dlock-migrate up\" to go on"), ran.out);
    CHECK(
        eventually([&] { return !held.test_database->somebody_waits(); }));  // the server does not go on with it either
    CHECK(schema::status(held.test_database->url()).state !=
          schema::SchemaState::locked);  // nor is it said that somebody is at work
    held.other->unblock();
    CHECK(migrate({"up", "-u", held.test_database->url()}).code == 0);
    CHECK(migrate({"check", "-u", held.test_database->url()}).code == 0);
  }
}

TEST_CASE("down and repair are cut off in the same way") {
  const LaterVersions versions;
  BlockedTable held;
  auto down = migrate_child(
      {"down", "--to", "0", "--yes", "--force", "-u", held.test_database->url(), "--ddl-lock-timeout", "10m"});
  REQUIRE(held.a_step_waits());
  down.signal(SIGTERM);
  REQUIRE(line_with(down, "once more to cut it off"));
  down.signal(SIGTERM);
  const auto ran = finish(down);
  CHECK_MESSAGE(ran.code == 128 + SIGTERM, ran.out);
  CHECK_MESSAGE(ran.says("dlock-migrate down --to 0"), ran.out);
  CHECK(eventually([&] { return !held.test_database->somebody_waits(); }));
  held.other->unblock();
  CHECK(schema::up(held.test_database->url()).state == schema::SchemaState::good);
  CHECK(schema::check(held.test_database->url()).state == schema::SchemaState::good);
}

TEST_CASE("a third signal does not wait for a server that cannot be told") {
  const LaterVersions versions;
  BlockedTable held;
  Proxy proxy(*held.test_database);
  auto up = migrate_child(held.up(held.test_database->url_at(proxy.address())));
  REQUIRE(held.a_step_waits());
  proxy.black_hole();
  up.signal(SIGTERM);
  REQUIRE(line_with(up, "once more to cut it off"));
  up.signal(SIGTERM);
  REQUIRE(line_with(up, "having the database cut off the step"));
  up.signal(SIGINT);
  CHECK(finish(up).code == 128 + SIGTERM);
  held.test_database->disconnect_everybody();
}
