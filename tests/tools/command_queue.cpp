// What wait, graph, run --fifo, and the waiters in list and inspect promise.
#include "command.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/json.hpp"
#include "support/paths.hpp"
#include "support/slowness.hpp"

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
  for (const std::vector<std::string>& patience :
       {std::vector<std::string>{"-n"}, {"-w", "0"}, {"-w", words(1s * slowness())}}) {
    std::vector<std::string> words{"wait", "job"};
    words.insert(words.end(), patience.begin(), patience.end());
    Ran busy;
    // It may have 250 ms for its first look: too little in a crowd, and then once more.
    CHECK(eventually([&] {
      busy = dlock_tool(database.url(), words);
      return busy.code != 8 || slowness() == 1;
    }));
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

TEST_CASE("graph shows each of those who hold a name together, and nobody who holds it no more") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  std::vector<Lock> readers, permits;
  const auto take = [&](const std::string& name, LockOptions options, const std::string& label) {
    options.label = label;
    auto lock = answered([&] { return engine.try_lock(name, options); });
    REQUIRE(lock);
    return std::move(*lock);
  };
  for (const std::string label : {"r1", "r2", "r3", "r4", "gone"})
    readers.push_back(take("job", {.mode = Mode::shared}, label));
  readers.back().release();
  readers.pop_back();
  permits.push_back(take("seats", {.mode = Mode::permits, .permits = 2, .limit = 3}, "p1"));
  permits.push_back(take("seats", {.mode = Mode::permits, .permits = 1, .limit = 3}, "p2"));
  const auto quiet = take("quiet", {.mode = Mode::shared}, "nobody waits for this one");
  auto writer = dlock_at(database.url(), {"run", "--fifo", "--label", "writer", "job", "--", "true"});
  REQUIRE(eventually([&] { return tickets(engine) == 1; }));
  auto asker = dlock_at(database.url(), {"run", "--label", "asker", "--limit", "3", "seats", "--", "true"});
  REQUIRE(eventually([&] { return !engine.waiters("seats").empty(); }));

  const auto json = Json::parse(dlock_tool(database.url(), {"graph", "--format", "json"}).out);
  REQUIRE(json["waiters"].size() == 2);
  for (const auto& waiter : json["waiters"].elements()) CHECK(waiter["holder"].is_null());
  CHECK(json["waiters"][0]["mode"] == "exclusive");
  CHECK(json["waiters"][1]["mode"] == "permits");
  REQUIRE(json["holders"].size() == 6);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& holder = json["holders"][i];
    CHECK(holder["name"] == "job");
    CHECK(holder["label"] == "r" + std::to_string(i + 1));
    CHECK(holder["token"] == number(readers[i].token()));
    CHECK(holder["owner"] == readers[i].owner());
    CHECK(holder["permits"].is_null());
    CHECK(holder["left_us"] > 0);
  }
  CHECK(json["holders"][4]["permits"] == 2);
  CHECK(json["holders"][5]["permits"] == 1);
  CHECK(json["holders"][5]["label"] == "p2");

  const auto text = dlock_tool(database.url(), {"graph"});
  const auto named = [&](const std::string& label, const Lock& lock, const std::string& more = "") {
    return label + " (token " + std::to_string(number(lock.token())) + more + ")";
  };
  CHECK_MESSAGE(text.says("held by " + named("r1", readers[0]) + ", " + named("r2", readers[1]) + ", " +
                          named("r3", readers[2]) + " and 1 more"),
                text.out);
  CHECK_MESSAGE(text.says("held by " + named("p1", permits[0], ", 2 permits") + ", " + named("p2", permits[1]) + "\n"),
                text.out);
  CHECK_FALSE(text.says("nobody waits for this one"));
  CHECK_MESSAGE(text.says("asker waits for \"seats\" for permits for "), text.out);
  const auto dot = dlock_tool(database.url(), {"graph", "--dot"});
  for (const std::string label : {"r1", "r4", "p1", "p2", "writer", "asker"})
    CHECK_MESSAGE(dot.says("[label=\"" + label + "\"]"), dot.out);
  CHECK_MESSAGE(dot.says("  \"job\" [label=\"job\", shape=ellipse];"), dot.out);
  CHECK_MESSAGE(dot.says("-> \"job\" [label=\"job\"];"), dot.out);
  const auto some = Json::parse(dlock_tool(database.url(), {"graph", "sea*", "--format", "json"}).out);
  CHECK(some["waiters"].size() == 1);
  CHECK(some["holders"].size() == 2);

  permits.clear();
  CHECK(finish(asker).code == 0);
  readers.clear();
  CHECK(finish(writer).code == 0);
  const auto nobody = Json::parse(dlock_tool(database.url(), {"graph", "--format", "json"}).out);
  CHECK((nobody["waiters"].size() == 0 && nobody["holders"].size() == 0));
}

TEST_CASE("graph names a deadlock through one of several readers") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  std::vector<Lock> readers;
  for (const std::string label : {"r1", "r2", "r3"}) {
    auto lock = answered(
        [&] { return engine.try_lock("job", {.mode = Mode::shared, .job = Job("job of " + label), .label = label}); });
    REQUIRE(lock);
    readers.push_back(std::move(*lock));
  }
  const auto inner = "exec '" + path::tool("dlock") + "' run --label writer job -- true";
  auto writer = dlock_at(database.url(), {"run", "x", "-c", inner});
  REQUIRE(eventually([&] { return !engine.waiters("job").empty(); }));
  CHECK_FALSE(dlock_tool(database.url(), {"graph"}).says("deadlock"));
  // One who waits for what the writer holds, and came after it: the youngest is to give way, and this one does not.
  database.admin().run(
      "INSERT INTO resource_lock_waiter (name, owner, node, label, actor, mode, ticket, since, expires_at, "
      "wants_until) "
      "SELECT 'x', h.owner, h.node, h.label, h.actor, 'barging', 0, w.since + 1000000, w.expires_at + 600000000, 0 "
      "FROM resource_lock_waiter w, resource_lock_holder h WHERE w.name = 'job' AND h.label = 'r2'");
  auto as_text = dlock_at(database.url(), {"graph"}), as_dot = dlock_at(database.url(), {"graph", "--dot"});
  const auto text = finish(as_text), dot = finish(as_dot);
  const bool named = text.says("deadlock: writer holds \"x\", waits for \"job\"; r2 holds \"job\", waits for \"x\"") ||
                     text.says("deadlock: r2 holds \"job\", waits for \"x\"; writer holds \"x\", waits for \"job\"");
  CHECK_MESSAGE(named, text.out);
  CHECK_MESSAGE(dot.says("-> \"job\" [label=\"job\", color=red];"), dot.out);
  CHECK_MESSAGE(dot.says("[label=\"x\", color=red];"), dot.out);
  database.admin().run("DELETE FROM resource_lock_waiter WHERE name = 'x'");
  readers.clear();
  const auto ran = finish(writer);
  CHECK_MESSAGE(ran.code == 0, ran.out);
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
