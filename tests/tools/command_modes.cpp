// What acquire and run promise of a lock that several may hold: --shared, --limit and --permits.
#include "command.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/json.hpp"
#include "support/paths.hpp"
#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

std::string first_line(const Ran& ran) { return ran.out.substr(0, ran.out.find('\n')); }

// What acquire prints, token and owner; empty where it is busy.
std::string taken(const Database& database, std::vector<std::string> options) {
  options.insert(options.begin(), {"acquire", "-n", "job", "--ttl", "5m"});
  const auto ran = dlock_tool(database.url(), std::move(options));
  CHECK_MESSAGE((ran.code == 0 || ran.code == 75), ran.out);
  return ran.code == 0 ? first_line(ran) : std::string();
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

ExitStatus code_of(const Database& database, const std::vector<std::string>& arguments) {
  return dlock_tool(database.url(), arguments).code;
}

}  // namespace

TEST_CASE("a share that is given back after its lease was over exits 3, whoever else is in") {
  Database database;
  auto engine = database.engine();
  const auto url = database.url();
  for (const auto& mode : std::vector<std::vector<std::string>>{{"--shared"}, {"--limit", "5"}})
    for (const bool alone : {true, false}) {
      const auto name = "job" + mode.front() + (alone ? " alone" : " [x]");
      auto words = std::vector<std::string>{"acquire", "-n", name};
      words.insert(words.end(), mode.begin(), mode.end());
      auto others = words;
      words.insert(words.end(), {"--ttl", "1s"});
      others.insert(others.end(), {"--ttl", "1h"});
      const auto acquired = dlock_tool(url, words);
      REQUIRE_MESSAGE(acquired.code == 0, acquired.out);
      const auto other = alone ? std::string() : first_line(dlock_tool(url, others));
      const auto mine = first_line(acquired);
      CHECK(eventually([&] {
        const auto all = engine.sharers();
        return std::none_of(all.begin(), all.end(), [&](const Sharer& sharer) { return mine.ends_with(sharer.owner); });
      }));
      const auto late = dlock_tool(url, {"release", name, "--token", mine});
      CHECK_MESSAGE(late.code == 3, late.out);
      if (!alone) CHECK(code_of(database, {"release", name, "--token", other}) == 0);
    }
}

TEST_CASE("acquire --shared lets others in that say so, and each is renewed and released by its own grant") {
  Database database;
  const auto one = taken(database, {"--shared"}), two = taken(database, {"--shared"});
  REQUIRE_FALSE((one.empty() || two.empty()));
  CHECK(one != two);
  CHECK(taken(database, {}).empty());
  CHECK(taken(database, {"--limit", "5"}).empty());
  for (const std::string command : {"renew", "release"}) {
    const auto nobody = dlock_tool(database.url(), {command, "job", "--token", one.substr(0, one.find(' '))});
    CHECK_MESSAGE((nobody.code == 3 && nobody.says("give both words that acquire answered")), nobody.out);
  }
  CHECK(code_of(database, {"renew", "job", "--token", one, "--ttl", "1h"}) == 0);
  CHECK(code_of(database, {"release", "job", "--token", one}) == 0);
  CHECK(code_of(database, {"release", "job", "--token", one}) == 3);
  CHECK(code_of(database, {"renew", "job", "--token", one}) == 3);
  CHECK(taken(database, {}).empty());
  CHECK(code_of(database, {"release", "job", "--token", two}) == 0);
  const auto alone = taken(database, {});
  CHECK_FALSE(alone.empty());
  CHECK(taken(database, {"--shared"}).empty());
  CHECK(code_of(database, {"release", "job", "--token", alone}) == 0);
}

TEST_CASE("acquire --limit takes permits as long as there are some, and release gives back those of its grant") {
  Database database;
  const auto two = taken(database, {"--limit", "3", "--permits", "2"});
  const auto one = taken(database, {"--limit", "3"});
  REQUIRE_FALSE((one.empty() || two.empty()));
  CHECK(taken(database, {"--limit", "3"}).empty());
  CHECK(taken(database, {"--shared"}).empty());
  CHECK(code_of(database, {"renew", "job", "--token", two, "--ttl", "1h"}) == 0);
  CHECK(code_of(database, {"release", "job", "--token", two}) == 0);
  CHECK(taken(database, {"--limit", "3", "--permits", "3"}).empty());
  const auto others = taken(database, {"--limit", "3", "--permits", "2"});
  CHECK_FALSE(others.empty());
  CHECK(code_of(database, {"release", "job", "--token", others}) == 0);
  CHECK(code_of(database, {"release", "job", "--token", one}) == 0);
}

TEST_CASE("runs share a lock as readers, or as many as the limit says") {
  Database database;
  const auto run = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"run", "-n"});
    options.insert(options.end(), {"job", "--", "true"});
    return code_of(database, options);
  };
  auto engine = database.engine({.reentrance = Reentrance::none});
  auto reader = engine.try_lock("job", {.mode = Mode::shared});
  REQUIRE(reader);
  CHECK(run({"--shared"}) == 0);
  CHECK(run({}) == 75);
  CHECK(run({"--limit", "9"}) == 75);
  reader->release();
  auto permit = engine.try_lock("job", {.mode = Mode::permits, .permits = 2, .limit = 3});
  REQUIRE(permit);
  CHECK(run({"--limit", "3"}) == 0);
  CHECK(run({"--limit", "3", "--permits", "2"}) == 75);
  CHECK(run({"--limit", "2"}) == 75);
  CHECK(run({"--shared"}) == 75);
  permit->release();
  CHECK(run({}) == 0);
}

TEST_CASE("of ten runs at one time no more than the limit says are inside, and each has its turn") {
  Database database;
  const TemporaryFolder folder;
  // Each counts those who are inside while it is.
  const std::string work = "cd '" + folder.path() +
                           "' && : >in.$$ && ls in.* | wc -l >>counted && sleep 0.2 && ls in.* | wc -l >>counted && "
                           "rm in.$$ && echo done >>ended";
  in_parallel(10, [&](int) {
    const auto ran = dlock_tool(database.url(), {"run", "--limit", "3", "job", "--", "sh", "-c", work});
    CHECK_MESSAGE(ran.code == 0, ran.out);
  });
  const auto counted = lines_of(folder.path() + "/counted");
  CHECK(counted.size() == 20);
  for (const auto& count : counted) CHECK_MESSAGE(std::stoi(count) <= 3, count);
  CHECK(lines_of(folder.path() + "/ended").size() == 10);
}

TEST_CASE("no more runs begin within the at-least time than the limit says") {
  Database database;
  const auto run = [&] {
    return code_of(database, {"run", "-n", "--limit", "2", "--at-least", "1h", "job", "--", "true"});
  };
  CHECK(run() == 0);
  CHECK(run() == 0);
  CHECK(run() == 75);
  auto engine = database.engine();
  free_by_force(engine, "job");
}

TEST_CASE("a run inside a run that shares the same name is refused, as it is inside of one that is alone") {
  Database database;
  for (const std::vector<std::string>& outer : {std::vector<std::string>{"--shared"}, {"--limit", "4"}}) {
    for (const std::string inner : {"", "--shared", "--limit 4"}) {
      auto arguments = outer;
      arguments.insert(arguments.begin(), "run");
      arguments.insert(arguments.end(),
                       {"job", "--", "sh", "-c", "exec \"$0\" run " + inner + " job -- true", path::tool("dlock")});
      const auto ran = dlock_tool(database.url(), arguments);
      CHECK_MESSAGE(ran.code == 125, ran.out);
      CHECK_MESSAGE(ran.says("is held by a dlock run around this one"), ran.out);
    }
  }
}

TEST_CASE("what a run holds is waited for inside of it by no acquire and no wait, unless they have a bound") {
  Database database;
  const auto inside = [&](std::vector<std::string> arguments, const std::string& inner) {
    arguments.insert(arguments.begin(), "run");
    arguments.insert(arguments.end(), {"job", "--", "sh", "-c", "exec \"$0\" " + inner + " job", path::tool("dlock")});
    return dlock_tool(database.url(), arguments);
  };
  for (const std::vector<std::string>& outer : {std::vector<std::string>{}, {"--shared"}})
    for (const std::string inner : {"acquire --ttl 1m", "wait"}) {
      const auto ran = inside(outer, inner);
      CHECK_MESSAGE((ran.code == 1 && ran.says("is held by a dlock run around this one")), ran.out);
    }
  const auto full = inside({"--limit", "1"}, "acquire --ttl 1m --limit 1");
  CHECK_MESSAGE((full.code == 1 && full.says("is held by a dlock run around this one")), full.out);
  for (const std::string inner : {"acquire --ttl 1m -n", "acquire --ttl 1m -w 1ms", "wait -n", "wait -w 1ms"})
    CHECK(inside({}, inner).code == 75);
  const auto beside = inside({"--shared"}, "acquire --ttl 1m --shared");
  CHECK_MESSAGE(beside.code == 0, beside.out);
  auto engine = database.engine();
  free_by_force(engine, "job");
}

TEST_CASE("list and inspect say how many hold a lock, and in which mode") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  const auto one = engine.try_lock("job", {.mode = Mode::shared, .label = "first"});
  const auto alone = dlock_tool(database.url(), {"inspect", "job"});
  CHECK_MESSAGE((alone.code == 0 && alone.says("mode:      shared") && !alone.says("owner:")), alone.out);
  const auto two = engine.try_lock("job", {.mode = Mode::shared, .label = "second"});
  REQUIRE((one && two));
  const auto list = dlock_tool(database.url(), {"list"});
  CHECK_MESSAGE(list.says("second and 1 more"), list.out);
  const auto json = Json::parse(dlock_tool(database.url(), {"inspect", "job", "--format", "json"}).out);
  CHECK(json["mode"] == "shared");
  CHECK(json["entries"] == 2);
  const auto busy = dlock_tool(database.url(), {"acquire", "-n", "job", "--ttl", "5m"});
  CHECK_MESSAGE((busy.code == 75 && busy.says("is held by second and 1 more")), busy.out);
}

TEST_CASE(
    "list and inspect say how many permits of a name are taken, and of how many, and nothing of the kind of others") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  const auto tool = [&](std::vector<std::string> arguments) {
    return dlock_tool(database.url(), std::move(arguments)).out;
  };
  const auto alone = engine.try_lock("alone");
  CHECK_MESSAGE(tool({"list"}).find("PERMITS") == std::string::npos, tool({"list"}));
  CHECK(tool({"inspect", "alone"}).find("permits") == std::string::npos);
  auto two = engine.try_lock("gpu", {.mode = Mode::permits, .permits = 2, .limit = 3});
  REQUIRE((alone && two));
  const auto list = tool({"list"});
  CHECK_MESSAGE(list.substr(0, list.find('\n')).ends_with("WAITERS  PERMITS"), list);
  CHECK_MESSAGE(list.find("  2 of 3\n") != std::string::npos, list);
  CHECK_MESSAGE(list.find("  -\n") != std::string::npos, list);
  const auto text = tool({"inspect", "gpu"});
  CHECK_MESSAGE(text.find("permits:   2 of 3\n") != std::string::npos, text);
  const auto json = Json::parse(tool({"inspect", "gpu", "--format", "json"}));
  CHECK(json["permits"] == 2);
  CHECK(json["limit"] == 3);
  const auto other = Json::parse(tool({"inspect", "alone", "--format", "json"}));
  CHECK(other["permits"] == 0);
  CHECK(other["limit"] == 0);
  CHECK(Json::parse(tool({"list", "gpu", "--format", "json"}))["locks"][0]["limit"] == 3);
  // The limit is that of the last one that came.
  const auto one = engine.try_lock("gpu", {.mode = Mode::permits, .limit = 5});
  REQUIRE(one);
  CHECK(tool({"list"}).find("  3 of 5\n") != std::string::npos);
  two->release();
  CHECK(tool({"inspect", "gpu"}).find("permits:   1 of 5\n") != std::string::npos);
}

TEST_CASE("what does not go together, or can never be granted, is refused with the values and the rule") {
  Database database;
  const auto check_refused = [&](const std::vector<std::string>& options, const std::string& text) {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"acquire", "job", "--ttl", "5m"}, {"run", "job"}}) {
      auto arguments = command;
      arguments.insert(arguments.begin() + 1, options.begin(), options.end());
      const bool is_run = command.front() == "run";
      if (is_run) arguments.insert(arguments.end(), {"--", "true"});
      const auto ran = dlock_tool(database.url(), arguments);
      CHECK_MESSAGE(ran.code == (is_run ? 125 : 2), ran.out);
      CHECK_MESSAGE(ran.says(text), ran.out);
      CHECK_MESSAGE(ran.lines() == 1, ran.out);
    }
  };
  check_refused({"--shared", "--limit", "3"}, "--shared and --limit exclude each other");
  check_refused({"--shared", "--permits", "3"}, "--shared and --permits exclude each other");
  check_refused({"--permits", "2"}, "--permits \"2\" needs --limit");
  check_refused({"--limit", "2", "--permits", "3"}, "--permits \"3\" is more than --limit \"2\"");
  check_refused({"--limit", "0"}, "--limit \"0\"");
  check_refused({"--limit", "-1"}, "--limit \"-1\"");
  check_refused({"--limit", "many"}, "--limit \"many\"");
  check_refused({"--limit", "3", "--permits", "0"}, "--permits \"0\"");
  check_refused({"--limit", "99999999999999999999"}, "--limit");
  CHECK(database.engine().list().empty());
}

TEST_CASE("a command that shares a lock is told that somebody waits whom it keeps out, and of nobody else") {
  struct Shared {
    std::vector<std::string> mine, beside, waiting;
  };
  for (const auto& way :
       {Shared{{"--shared"}, {"--shared"}, {}},
        Shared{{"--limit", "3", "--permits", "2"}, {"--limit", "3"}, {"--limit", "3", "--permits", "2"}}}) {
    INFO(way.mine.front());
    Database database;
    const auto command = [](std::vector<std::string> options, const std::vector<std::string>& more) {
      options.insert(options.begin(), "run");
      options.insert(options.end(), more.begin(), more.end());
      return options;
    };
    auto child = dlock_at(
        database.url(), command(way.mine, {"--renew-every", "200ms", "--yield-signal", "USR1", "job", "--", "sh", "-c",
                                           "trap 'echo told; exit 7' USR1; echo $$; while :; do sleep 0.02; done"}));
    REQUIRE(std::stol(child.line().value_or("0")) > 0);
    // Who comes in beside it asks it for nothing.
    const auto beside = dlock_tool(database.url(), command(way.beside, {"-n", "job", "--", "echo", "beside"}));
    CHECK_MESSAGE((beside.code == 0 && beside.says("beside")), beside.out);
    for (int renewals = 0; renewals < 3; ++renewals) {
      const auto before = database.admin().expires_at("job");
      REQUIRE(eventually([&] { return database.admin().expires_at("job") > before; }));
    }
    CHECK(child.running());
    auto next = dlock_at(database.url(), command(way.waiting, {"--fifo", "-w", "2m", "job", "--", "echo", "mine"}));
    const auto ran = finish(child);
    CHECK_MESSAGE(ran.code == 7, ran.out);
    CHECK_MESSAGE(ran.says("told"), ran.out);
    const auto after = finish(next);
    CHECK_MESSAGE((after.code == 0 && after.says("mine")), after.out);
  }
}
