// Tests what dlock history and dlock-migrate history promise to people and to scripts.
#include "command.hpp"
#include "migrate.hpp"
#include "support/database.hpp"
#include "support/json.hpp"
#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <dlock/guard.hpp>
#include <dlock/history.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

using namespace dlock;
using namespace dlock::test;

namespace {

struct Recorded : Database {
  Ran history(std::vector<std::string> more, const std::string& streams = "2>&1 </dev/null") {
    more.insert(more.begin(), {"history", "-u", url()});
    return migrate(more, {}, streams);
  }
  // Whether a release leaves a row.
  bool keeps(Engine& engine) {
    engine.try_lock("probe").reset();
    try {
      return admin().number("SELECT count(*) FROM resource_lock_history WHERE name = 'probe'") > 0;
    } catch (const std::exception&) { return false; }
  }
  // The database's own client, with this script.
  void run(const std::string& script) {
    const TemporaryFolder folder;
    const auto path = folder.path() + "/script.sql";
    std::ofstream(path) << script;
    Child child({"/bin/sh", "-c", "{ " + test_database().client() + " <" + path + " >/dev/null; } 2>&1"});
    const auto ran = finish(child);
    CHECK_MESSAGE(ran.code == 0, script << ran.out);
  }
};

}  // namespace

TEST_CASE("dlock-migrate history prints, --apply does it once, --remove takes it away") {
  Recorded database;
  auto engine = database.engine();
  const auto printed = database.history({}, "2>/dev/null </dev/null");
  CHECK(printed.code == 0);
  CHECK_MESSAGE(printed.says("CREATE TRIGGER"), printed.out);
  CHECK_FALSE(database.keeps(engine));
  const auto made = database.history({"--apply"});
  CHECK(made.code == 0);
  CHECK_MESSAGE(made.says("has a history now"), made.out);
  CHECK(database.keeps(engine));
  const auto again = database.history({"--apply"});
  CHECK(again.code == 0);
  CHECK_MESSAGE(again.says("nothing to do: "), again.out);
  const auto json = Json::parse(database.history({"--apply", "--format", "json"}, "2>/dev/null </dev/null").out);
  CHECK(json["changed"] == false);
  CHECK(database.history({"--remove"}).says("DROP TABLE"));
  CHECK(database.keeps(engine));
  const auto removed = database.history({"--apply", "--remove"});
  CHECK_MESSAGE(removed.says("has no history any more"), removed.out);
  CHECK_FALSE(database.keeps(engine));
  CHECK(database.history({"--apply", "--remove"}).says("nothing to do: "));
  CHECK(database.history({"--apply", "--dialect", std::string(opener().name)}).code == 2);
}

TEST_CASE(
    "what dlock-migrate history prints makes in the database's own client what --apply makes, as often as it is run") {
  Recorded database;
  auto engine = database.engine();
  const auto printed = database.history({}, "2>/dev/null </dev/null").out;
  for (int times = 0; times < 2; ++times) {
    database.run(printed);
    CHECK(database.keeps(engine));
    CHECK(database.history({"--apply"}).says("has its history already"));
  }
  const auto removing = database.history({"--remove"}, "2>/dev/null </dev/null").out;
  for (int times = 0; times < 2; ++times) {
    database.run(removing);
    CHECK_FALSE(database.keeps(engine));
    CHECK(database.history({"--apply", "--remove"}).says("has no history"));
  }
}

TEST_CASE(
    "check says of a history that nothing writes any more what it is and what to run, as after a copy without "
    "triggers") {
  Recorded database;
  auto engine = database.engine();
  CHECK(database.history({"--apply"}).code == 0);
  CHECK(migrate({"check", "-u", database.url()}).code == 0);
  std::istringstream removing(database.history({"--remove"}, "2>/dev/null </dev/null").out);
  int dropped = 0;
  for (std::string line; std::getline(removing, line);)
    if (line.starts_with("DROP TRIGGER")) {
      database.admin().run(line.substr(0, line.find(';')));
      const auto told = migrate({"check", "-u", database.url()});
      CHECK(told.code == 4);
      CHECK_MESSAGE(told.says("resource_lock_history"), told.out);
      CHECK_MESSAGE(told.says("dlock-migrate history --apply"), told.out);
      ++dropped;
    }
  CHECK(dropped > 2);
  CHECK_FALSE(database.keeps(engine));
  CHECK(database.history({"--apply"}).code == 0);
  CHECK(migrate({"check", "-u", database.url()}).code == 0);
  CHECK(database.keeps(engine));
  try {  // where a database knows that
    database.admin().run("ALTER TABLE resource_lock_holder DISABLE TRIGGER USER");
  } catch (const std::exception&) { return; }
  CHECK(migrate({"check", "-u", database.url()}).code == 4);
  CHECK(database.history({"--apply"}).code == 0);
  CHECK(migrate({"check", "-u", database.url()}).code == 0);
}

TEST_CASE("dlock history lists the newest first, and says 3 of a lock without one and 7 where no history is kept") {
  Recorded database;
  auto engine = database.engine({.node = "web3"});
  const auto none = dlock_tool(database.url(), {"history", "job"});
  CHECK(none.code == 7);
  CHECK_MESSAGE(none.says("dlock-migrate history --apply"), none.out);
  CHECK_MESSAGE(!none.says("dlock-migrate up"), none.out);
  CHECK(database.history({"--apply"}).code == 0);
  const auto empty = dlock_tool(database.url(), {"history", "job"});
  CHECK(empty.code == 3);
  CHECK_MESSAGE(empty.says("there is no history of \"job\""), empty.out);
  engine.try_lock("job", {.label = "first"}).reset();
  auto lock = engine.try_lock("job", {.renew = false, .label = "second"});
  REQUIRE(lock);
  CHECK(engine.force_release("job", lock->token(), "it hangs"));
  const auto shown = dlock_tool(database.url(), {"history", "job"});
  CHECK(shown.code == 0);
  CHECK(shown.lines() == 3);
  CHECK_MESSAGE(shown.says("BEGUN"), shown.out);
  CHECK_MESSAGE(shown.says("forced: it hangs"), shown.out);
  CHECK(shown.out.find("second") < shown.out.find("first"));
  const auto json = Json::parse(dlock_tool(database.url(), {"history", "job", "--limit", "1", "--format", "json"}).out);
  CHECK(json["name"] == "job");
  REQUIRE(json["history"].size() == 1);
  const auto entry = json["history"][0];
  CHECK(entry["label"] == "second");
  CHECK(entry["node"] == "web3");
  CHECK(entry["mode"] == "exclusive");
  CHECK(entry["outcome"] == "forced");
  CHECK(entry["reason"] == "it hangs");
  CHECK(dlock_tool(database.url(), {"history", "job", "--limit", "0"}).code == 2);
  CHECK(dlock_tool(database.url(), {"history"}).code == 2);
}

TEST_CASE("dlock reap --history cuts the oldest rows of history, and without it leaves them alone") {
  Recorded database;
  auto engine = database.engine();
  CHECK(database.history({"--apply"}).code == 0);
  for (int i = 0; i < 6; ++i) engine.try_lock("job", {.label = std::to_string(i)}).reset();
  CHECK(dlock_tool(database.url(), {"reap"}).code == 0);
  CHECK(engine.history("job").size() == 6);
  const auto look = dlock_tool(database.url(), {"reap", "--history", "4", "--dry-run"});
  CHECK_MESSAGE(look.says("would cut 2 rows of history"), look.out);
  CHECK(engine.history("job").size() == 6);
  const auto cut = dlock_tool(database.url(), {"reap", "--history", "4"});
  CHECK_MESSAGE(cut.says("cut 2 rows of history"), cut.out);
  REQUIRE(engine.history("job").size() == 4);
  CHECK(engine.history("job").back().label == "2");
  CHECK(Json::parse(dlock_tool(database.url(), {"reap", "--history", "1", "--format", "json"}).out)["history"] == 3);
  CHECK(dlock_tool(database.url(), {"reap", "--history", "-1"}).code == 2);
}

TEST_CASE("runs that share a lock have a row each in its history, with their begin, end, mode and outcome") {
  Recorded database;
  auto engine = database.engine();
  CHECK(database.history({"--apply"}).code == 0);
  struct Shared {
    std::vector<std::string> options;
    std::string mode;
  };
  for (const auto& way : {Shared{{"--shared"}, "shared"}, Shared{{"--limit", "3", "--permits", "2"}, "permits"}}) {
    INFO(way.mode);
    auto arguments = way.options;
    arguments.insert(arguments.begin(), "run");
    arguments.insert(arguments.end(), {"--label", "a run", way.mode, "--", "sh", "-c", "sleep 0.2; exit 9"});
    // Beside somebody who is ended by force afterwards.
    auto beside = engine.try_lock(way.mode, {.mode = way.mode == "shared" ? Mode::shared : Mode::permits,
                                             .limit = way.mode == "shared" ? 0 : 3,
                                             .lease = std::chrono::minutes{10},
                                             .renew = false,
                                             .label = "beside"});
    REQUIRE(beside);
    const auto ran = dlock_tool(database.url(), arguments);
    CHECK_MESSAGE(ran.code == 9, ran.out);
    const auto shown = dlock_tool(database.url(), {"history", way.mode});
    CHECK_MESSAGE((shown.code == 0 && shown.lines() == 2 && shown.says("a run")), shown.out);
    CHECK(engine.force_release(way.mode, engine.inspect(way.mode)->token, "it hangs"));
    CHECK(beside->release() == Released::was_lost);
    const auto json = Json::parse(dlock_tool(database.url(), {"history", way.mode, "--format", "json"}).out);
    REQUIRE(json["history"].size() == 2);
    const auto row_of = [&](std::string_view label) {
      const auto rows = json["history"].elements();
      const auto row = std::find_if(rows.begin(), rows.end(), [&](const Json& one) { return one["label"] == label; });
      REQUIRE(row != rows.end());
      CHECK((*row)["mode"] == way.mode);
      CHECK((*row)["begun_us"] > 0);
      CHECK((*row)["ended_us"] > (*row)["begun_us"]);
      return *row;
    };
    CHECK(row_of("a run")["outcome"] == "released");
    CHECK(row_of("beside")["outcome"] == "forced");
    CHECK(row_of("beside")["reason"] == "it hangs");
    const auto entries = engine.history(way.mode);
    REQUIRE(entries.size() == 2);
    for (const auto& entry : entries)
      if (entry.label == "a run") CHECK(entry.ended - entry.begun >= std::chrono::milliseconds{200});
  }
}
