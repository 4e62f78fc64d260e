// This file knows what wait, graph, run --fifo, and the waiters in list and inspect promise.
#include "command.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/json.hpp"
#include "support/paths.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <fstream>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

std::size_t tickets(Engine& engine) {
  std::size_t count = 0;
  for (const auto& waiter : engine.waiters("job")) count += waiter.ticket != 0 ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("wait ends when the lock is free, without taking it") {
  Database database;
  auto engine = database.engine();
  CHECK(dlock_tool(database.url(), {"wait", "job"}).code == 0);
  CHECK_FALSE(engine.inspect("job"));
  auto lock = engine.try_lock("job", {.label = "web1"});
  REQUIRE(lock);
  for (const std::vector<std::string>& patience : {std::vector<std::string>{"-n"}, {"-w", "0"}, {"-w", "50ms"}}) {
    std::vector<std::string> words{"wait", "job"};
    words.insert(words.end(), patience.begin(), patience.end());
    const auto busy = dlock_tool(database.url(), words);
    CHECK(busy.code == 75);
    CHECK_MESSAGE(busy.says("is held by web1-"), busy.out);
  }
  auto waiting = dlock_at(database.url(), {"wait", "job"});
  const auto marked = [&] {
    return database.admin().number("SELECT wanted_until FROM resource_lock WHERE name = 'job'") > 0;
  };
  REQUIRE(eventually(marked));
  lock->release();
  CHECK(finish(waiting).code == 0);
  CHECK(database.admin().held() == 0);
}

TEST_CASE("a signal ends wait with 128 and its number") {
  Database database;
  auto engine = database.engine();
  const auto lock = engine.try_lock("job");
  REQUIRE(lock);
  auto waiting = dlock_at(database.url(), {"wait", "job"});
  REQUIRE(eventually(
      [&] { return database.admin().number("SELECT wanted_until FROM resource_lock WHERE name = 'job'") > 0; }));
  waiting.signal(SIGTERM);
  CHECK(finish(waiting).code == 128 + SIGTERM);
}

TEST_CASE("runs with --fifo take turns in the order in which they came, and are seen while they wait") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("job", {.label = "web1"});
  REQUIRE(lock);
  TemporaryFolder folder;
  const auto log = folder.path() + "/log";
  std::vector<Child> runs;
  for (int i = 0; i < 4; ++i) {
    runs.push_back(dlock_at(database.url(), {"run", "--fifo", "--label", "run" + std::to_string(i), "job", "-c",
                                             "echo " + std::to_string(i) + " >> " + log}));
    REQUIRE(eventually([&] { return tickets(engine) == static_cast<std::size_t>(i) + 1; }));
  }
  const auto list = dlock_tool(database.url(), {"list"});
  CHECK_MESSAGE(list.says("WAITERS"), list.out);
  const auto row = Json::parse(dlock_tool(database.url(), {"inspect", "job", "--format", "json"}).out);
  CHECK(row["waiters"] == 4);
  REQUIRE(row["queue"].size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(row["queue"][i]["label"] == "run" + std::to_string(i));
  const auto people = dlock_tool(database.url(), {"inspect", "job"});
  CHECK_MESSAGE(people.says("run3 waits for \"job\" in turn (ticket 4)"), people.out);
  const auto graph = dlock_tool(database.url(), {"graph"});
  CHECK(graph.code == 0);
  CHECK_MESSAGE(graph.says("run0 waits for \"job\" in turn (ticket 1)"), graph.out);
  CHECK_MESSAGE(graph.says("held by web1 (token 1)"), graph.out);
  const auto dot = dlock_tool(database.url(), {"graph", "--dot"});
  CHECK_MESSAGE(dot.says("digraph dlock {"), dot.out);
  CHECK_MESSAGE(dot.says("[label=\"run2\"]"), dot.out);
  const auto json = Json::parse(dlock_tool(database.url(), {"graph", "j*", "--format", "json"}).out);
  CHECK(json["format_version"] == 1);
  REQUIRE(json["waiters"].size() == 4);
  CHECK(json["waiters"][0]["holder"]["label"] == "web1");
  lock->release();
  for (auto& run : runs) CHECK(finish(run).code == 0);
  std::ifstream file(log);
  std::string line, order;
  while (std::getline(file, line)) order += line;
  CHECK(order == "0123");
  CHECK(dlock_tool(database.url(), {"graph"}).says("nobody waits"));
}

TEST_CASE("a run or an acquire inside of a run is of its job: two that wait for each other are told of the deadlock") {
  for (const bool acquires : {false, true}) {
    Database database;
    TemporaryFolder folder;
    const auto nested = [&](const std::string& outer, const std::string& inner) {
      // Both hold their first name before either asks for its second.
      const auto asks = acquires ? " acquire --ttl 10m --label " + outer + " " + inner
                                 : " run --label " + outer + " " + inner + " -- true";
      const auto script = "touch " + folder.path() + "/" + outer + "; while ! test -e " + folder.path() + "/" + inner +
                          "; do sleep 0.02; done; exec \"" + path::tool("dlock") + "\"" + asks;
      return dlock_at(database.url(), {"run", "--label", outer, outer, "-c", script});
    };
    auto one = nested("x", "y"), two = nested("y", "x");
    const auto first = finish(one), second = finish(two);
    const bool is_first = first.code != 0;
    const auto &victim = is_first ? first : second, &other = is_first ? second : first;
    if (!acquires) CHECK(victim.code == 125);
    CHECK(victim.code != 0);
    CHECK(other.code == 0);
    CHECK_MESSAGE(victim.says("deadlock: "), victim.out);
    CHECK_MESSAGE(victim.says("x holds \"x\", waits for \"y\" (job "), victim.out);
    CHECK_MESSAGE(victim.says("y holds \"y\", waits for \"x\" (job "), victim.out);
    CHECK_MESSAGE(victim.says("(job \"dlock-run/"), victim.out);
    CHECK_MESSAGE(victim.says(" of another process)"), victim.out);
    if (!acquires) continue;
    auto engine = database.engine();
    free_by_force(engine, is_first ? "x" : "y");  // what the other one has acquired
  }
}

TEST_CASE("wait and graph refuse what makes no sense") {
  Database database;
  const auto url = database.url();
  CHECK(dlock_tool(url, {"wait"}).code == 2);
  CHECK(dlock_tool(url, {"wait", ""}).code == 2);
  CHECK(dlock_tool(url, {"wait", "job", "-w", "soon"}).code == 2);
  CHECK(dlock_tool(url, {"wait", "job", "--format", "env"}).code == 2);
  CHECK(dlock_tool(url, {"graph", "--dot", "--format", "json"}).code == 2);
  CHECK(dlock_tool(url, {"graph", "*", "--", "true"}).code == 2);
}
