// What `dlock reap` promises to people and to cron.
#include "command.hpp"
#include "store/reaper_table.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/json.hpp"
#include "support/paths.hpp"
#include "support/pty.hpp"
#include "support/rows.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <thread>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

Ran reap(const Database& database, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "reap");
  return dlock_tool(database.url(), std::move(arguments));
}

int rows(Database& database) {
  return static_cast<int>(database.admin().number("SELECT count(*) FROM resource_lock WHERE name <> ''"));
}

}  // namespace

TEST_CASE("reap settles and removes in one call, says what it did, and lowers no token") {
  Database database;
  add_old_rows(database.admin(), "old/", 3, 7);
  add_old_rows(database.admin(), "left/", 1, 41, true);
  auto engine = database.engine();
  const auto held = engine.try_lock("held");
  engine.try_lock("young").reset();
  const auto ran = reap(database, {"--grace", "100ms"});
  CHECK(ran.code == 0);
  CHECK_MESSAGE(ran.says("settled \"left/000000\" (token 41): held by left/000000 (node 1), expired without release"),
                ran.out);
  CHECK_MESSAGE(ran.says("removed 4 rows and settled 1 abandoned lease"), ran.out);
  CHECK(ran.lines() == 2);
  CHECK(rows(database) == 2);
  CHECK(engine.try_lock("old/000000")->token() > Token{42});
  const auto again = reap(database, {});  // nothing to remove: no grace is waited out
  CHECK(again.code == 0);
  CHECK_MESSAGE(again.says("removed 0 rows and settled 0 abandoned leases"), again.out);
}

TEST_CASE("reap keeps to the pattern, the retention and the limit") {
  Database database;
  add_old_rows(database.admin(), "a/", 5);
  add_old_rows(database.admin(), "b/", 5);
  add_old_rows(database.admin(), "left/", 2, 1, true);
  CHECK(reap(database, {"a/*[0-2]", "--grace", "50ms"}).says("removed 3 rows and settled 0"));
  CHECK_FALSE(database.admin().exists("a/000002"));
  CHECK(reap(database, {"b/*", "--grace", "50ms", "--limit", "2"}).says("removed 2 rows"));
  CHECK(rows(database) == 7);
  CHECK(reap(database, {"--grace", "50ms", "--limit", "all", "--retention", "40000d"})
            .says("removed 0 rows and settled 2"));
  CHECK(reap(database, {"--grace", "50ms", "--limit", "all", "--retention", "50ms"}).says("removed 7 rows"));
}

TEST_CASE("what was settled before a failure is shown all the same") {
  for (const bool json : {false, true}) {
    INFO(json);
    Database database;
    add_old_rows(database.admin(), "left/", 2, 1, true);
    // After its last token there is none.
    database.admin().run("UPDATE resource_lock SET token = 9223372036854775807 WHERE name = 'left/000001'");
    const auto ran = reap(database, {"--format", json ? "json" : "text"});
    CHECK_MESSAGE(ran.code != 0, ran.out);
    CHECK(database.admin().held() == 1);
    database.admin().run("UPDATE resource_lock SET owner = NULL, token = 1 WHERE name = 'left/000001'");
    if (!json) {
      CHECK_MESSAGE(ran.says("settled \"left/000000\" (token 1): held by left/000000 (node 1)"), ran.out);
      continue;
    }
    const auto shown = Json::parse(ran.out.substr(0, ran.out.find('\n')));  // the error is the next one
    CHECK(shown["abandoned"] == 1);
    CHECK(shown["settled"][0]["name"] == "left/000000");
  }
}

TEST_CASE("a dry run writes nothing, and a program can read it") {
  Database database;
  add_old_rows(database.admin(), "old/", 3);
  add_old_rows(database.admin(), "left/", 2, 1, true);
  const auto all_rows = [&] {
    std::string text = database.admin().row("");
    for (const char* name : {"old/000000", "old/000001", "old/000002", "left/000000", "left/000001"})
      text += "\n" + database.admin().row(name);
    return text;
  };
  const auto before = all_rows();
  const auto text = reap(database, {"--dry-run"});
  CHECK(text.code == 0);
  CHECK_MESSAGE(text.says("would remove 3 rows and settle 2 abandoned leases"), text.out);
  const auto dry = Json::parse(reap(database, {"--dry-run", "--format", "json"}).out);
  CHECK(dry["dry_run"] == true);
  CHECK(dry["removed"] == 3);
  CHECK(dry["abandoned"] == 2);
  CHECK(all_rows() == before);
  const auto wet = Json::parse(reap(database, {"--grace", "50ms", "--format", "json"}).out);
  CHECK(wet["format_version"] == 1);
  CHECK(wet["removed"] == 5);
  REQUIRE(wet["settled"].size() == 2);
  CHECK(wet["settled"][0]["name"] == "left/000000");
  CHECK(wet["settled"][0]["token"] == 1);
  CHECK(wet["settled"][0]["expired_us"] > 0);
}

TEST_CASE("reap waits for another reaper's turn, and a signal ends it") {
  Database database;
  add_old_rows(database.admin(), "left/", 1, 1, true);
  const auto table = database.table();
  const auto soon = [] { return later(BootClock::now(), 1min); };
  // As long as a turn may be at most: a longer one is taken for that of a clock that was stepped back.
  const auto take_turn = [&] { return table->reaping().begin_reaping("another", "another", 14s, {}, soon()); };
  REQUIRE(take_turn());
  std::jthread keeps_it([&](const std::stop_token& stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(100ms)) CHECK(take_turn());
  });
  auto waits = dlock_at(database.url(), {"reap", "--grace", "50ms"});
  auto stopped = dlock_at(database.url(), {"reap"});
  database.admin().run("UPDATE resource_lock SET expires_at = acquired_at + 1 WHERE name = 'left/000000'");
  REQUIRE(eventually([&] { return heeds(stopped, SIGTERM); }));
  stopped.signal(SIGTERM);
  const auto ended = finish(stopped);
  CHECK(ended.code == 128 + SIGTERM);
  CHECK(database.admin().held() == 1);
  keeps_it.request_stop();
  keeps_it.join();
  table->reaping().end_reaping("another", {}, soon());
  const auto ran = finish(waits);
  CHECK(ran.code == 0);
  CHECK_MESSAGE(ran.says("settled 1 abandoned lease"), ran.out);
}

TEST_CASE("on a terminal reap shows that it waits, and a pipe is spared that") {
  Database database;
  add_old_rows(database.admin(), "old/", 2);
  const std::vector<std::string> command{path::tool("dlock"), "reap", "--grace", words(2s * slowness())};
  Pty terminal(command, {"DLOCK_URL=" + database.url()});
  CHECK(terminal.shows("2 rows can go; waiting out the grace"));
  CHECK(terminal.shows("removed 2 rows"));
  CHECK(terminal.wait() == 0);
  add_old_rows(database.admin(), "old/", 2);
  const auto piped = reap(database, {"--grace", "1500ms"});
  CHECK(piped.lines() == 1);
}

TEST_CASE("what reap refuses, it refuses in one line that names the value and the rule") {
  Database database;
  const auto refused = [&](std::vector<std::string> arguments, std::string_view words) {
    const auto ran = reap(database, std::move(arguments));
    CHECK(ran.code == 2);
    CHECK(ran.lines() == 1);
    CHECK_MESSAGE(ran.says(words), ran.out);
  };
  refused({"--limit", "0"}, "--limit \"0\"");
  refused({"--limit", "many"}, "nor \"all\"");
  refused({"--retention", "10s"}, "--retention 10.0s is shorter than the grace");
  refused({"--retention", "soon"}, "--retention \"soon\"");
  refused({"--grace", "0"}, "--grace \"0\"");
  refused({"--format", "env"}, "env");
  refused({"one", "two"}, "two");
  CHECK(reap(database, {"--table", "nowhere"}).code == 7);
  const auto help = reap(database, {"--help"});
  CHECK(help.code == 0);
  for (const char* word : {"--retention", "--grace", "--limit", "--dry-run", "GLOB", "waits out the grace"})
    CHECK_MESSAGE(help.says(word), word);
}
