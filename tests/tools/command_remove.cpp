// Tests what `dlock remove` promises to people and to scripts.
#include "command.hpp"
#include "store/waiter_table.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/json.hpp"

#include <doctest/doctest.h>

#include <csignal>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

Ran remove(const Database& database, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"remove", "--grace", "20ms"});
  return dlock_tool(database.url(), std::move(arguments));
}

}  // namespace

TEST_CASE("remove forgets one free lock, and what is kept in its row; the next token is larger") {
  Database database;
  auto engine = database.engine();
  {
    auto lock = engine.try_lock("upload/7");
    lock->update_metadata("{\"bytes\": 4096}", Keep::for_next);
    const auto shown = dlock_tool(database.url(), {"inspect", "upload/7"});
    CHECK_MESSAGE(shown.says("kept:      {\"bytes\": 4096}"), shown.out);
    CHECK(Json::parse(dlock_tool(database.url(), {"list", "--format", "json"}).out)["locks"][0]["kept"] ==
          "{\"bytes\": 4096}");
  }
  engine.try_lock("upload/70").reset();
  const auto last = database.admin().token("upload/7");
  const auto ran = remove(database, {"upload/7"});
  CHECK_MESSAGE(ran.code == 0, ran.out);
  CHECK_MESSAGE(ran.says("removed \"upload/7\""), ran.out);
  CHECK_FALSE(database.admin().exists("upload/7"));
  CHECK(database.admin().exists("upload/70"));
  CHECK(engine.try_lock("upload/7")->token() > last);
  const auto json = Json::parse(remove(database, {"upload/7", "--format", "json"}).out);
  CHECK(json["name"] == "upload/7");
  CHECK(json["removed"] == true);
}

TEST_CASE("remove says what settles an expired lock") {
  Database database;
  auto engine = database.engine();
  engine.try_lock("job", {.renew = false})->detach();
  database.admin().expire("job");
  const auto expired = remove(database, {"job"});
  CHECK(expired.code == 75);
  CHECK_MESSAGE(expired.says("dlock reap settles it"), expired.out);
  CHECK(dlock_tool(database.url(), {"reap"}).code == 0);
  CHECK(remove(database, {"job"}).code == 0);
}

TEST_CASE("remove says 3 of what is not there, and 75 with the holder of what is held or waited for") {
  Database database;
  auto engine = database.engine();
  const auto absent = remove(database, {"job"});
  CHECK(absent.code == 3);
  CHECK_MESSAGE(absent.says("there is no lock \"job\""), absent.out);
  auto lock = engine.try_lock("job", {.label = "web3"});
  REQUIRE(lock);
  const auto held = remove(database, {"job"});
  CHECK(held.code == 75);
  CHECK_MESSAGE(held.says("\"job\" is held by web3-"), held.out);
  auto json = dlock_tool(database.url(), {"remove", "job", "--format", "json"}, "2>&1 >/dev/null </dev/null");
  CHECK(json.code == 75);
  CHECK(Json::parse(json.out)["error"]["code"] == "busy");
  lock->release();
  database.table()->waiting().want("job", 1h, later(BootClock::now(), 1min));
  const auto wanted = remove(database, {"job"});
  CHECK(wanted.code == 75);
  CHECK_MESSAGE(wanted.says("waited for"), wanted.out);
  CHECK(remove(database, {}).code == 2);
  CHECK(remove(database, {"job", "--grace", "-1s"}).code == 2);
  CHECK(database.admin().exists("job"));
}

TEST_CASE("a signal ends remove while it waits out the grace, and nothing is removed") {
  Database database;
  auto engine = database.engine();
  engine.try_lock("job").reset();
  auto child = dlock_at(database.url(), {"remove", "job"});
  REQUIRE(eventually([&] { return database.admin().floor() == database.admin().token("job"); }));
  child.signal(SIGTERM);
  CHECK(finish(child).code == 128 + SIGTERM);
  CHECK(database.admin().exists("job"));
}
