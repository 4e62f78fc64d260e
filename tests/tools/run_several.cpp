// What `dlock run` promises of several names: all of them or none, and the loss of one is that of the run.
#include "command.hpp"
#include "processes.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/json.hpp"
#include "support/paths.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

Ran run(const Database& database, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "run");
  return dlock_tool(database.url(), std::move(arguments));
}

pid_t first_pid(Child& child) { return static_cast<pid_t>(std::stol(child.line().value_or("0"))); }

bool held(Engine& engine, const std::string& name) {
  const auto row = engine.inspect(name);
  return row && row->state == State::held;
}

// Prints its number, and then does nothing.
const std::vector<std::string> sleeper{"--", "sh", "-c", "echo $$; while :; do sleep 0.02; done"};

Child sleeping(const Database& database, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "run");
  arguments.insert(arguments.end(), sleeper.begin(), sleeper.end());
  return dlock_at(database.url(), std::move(arguments));
}

}  // namespace

TEST_CASE("a command runs under all names, and finds the token and the owner of each") {
  Database database;
  auto engine = database.engine();
  CHECK(run(database, {"b", "--", "true"}).code == 0);  // its next token is 2
  const auto child_of = [&](const std::vector<std::string>& names) {
    std::vector<std::string> arguments{"run", "--ttl", "40s"};
    arguments.insert(arguments.end(), names.begin(), names.end());
    arguments.insert(arguments.end(),
                     {"--", "sh", "-c",
                      "echo \"$DLOCK_GRANTS\"; echo \"${DLOCK_NAME-none} ${DLOCK_TOKEN-none} ${DLOCK_OWNER-none} "
                      "$DLOCK_TTL_MS\"; read line"});
    return dlock_at(database.url(), arguments);
  };
  auto child = child_of({"b", "a c", "b", "a"});
  std::vector<std::string> lines;
  for (int i = 0; i < 4; ++i) lines.push_back(child.line().value_or(""));
  for (const std::string name : {"a", "a c", "b"}) {
    const auto row = engine.inspect(name);
    REQUIRE((row && row->state == State::held));
    const auto line = fmt::format("{} {} {}", number(row->token), row->owner, name);
    CHECK_MESSAGE(std::count(lines.begin(), lines.end(), line) == 1, line);
  }
  CHECK(number(engine.inspect("b")->token) == 2);
  CHECK(lines.back() == "none none none 40000");
  child.tell("");
  CHECK(child.wait() == 0);
  CHECK(database.admin().held() == 0);
  auto alone = child_of({"b", "b"});  // one name
  const auto line = alone.line().value_or("");
  const auto row = engine.inspect("b");
  CHECK(line == fmt::format("3 {} b", row->owner));
  CHECK(alone.line() == fmt::format("b 3 {} 40000", row->owner));
  alone.tell("");
  CHECK(alone.wait() == 0);
}

TEST_CASE(
    "runs that have names in common, in whatever order, are never inside together, and all of them come to an end") {
  Database database;
  TemporaryFolder folder;
  const auto inside = folder.path() + "/inside", log = folder.path() + "/log";
  const std::vector<std::vector<std::string>> sets{{"a", "b"}, {"b", "a"}, {"c", "b"},
                                                   {"b", "c"}, {"a", "c"}, {"c", "b", "a"}};
  constexpr int rounds = 3;
  std::vector<Child> runs;
  for (int i = 0; i < rounds; ++i)
    for (const auto& names : sets) {
      std::vector<std::string> arguments{"run"};
      arguments.insert(arguments.end(), names.begin(), names.end());
      arguments.insert(
          arguments.end(),
          {"--", "sh", "-c", "mkdir \"$0\" || exit 99; echo in >> \"$1\"; sleep 0.02; rmdir \"$0\"", inside, log});
      runs.push_back(dlock_at(database.url(), arguments));
    }
  for (auto& each : runs) {
    const auto ran = finish(each);
    CHECK_MESSAGE(ran.code == 0, ran.out);
  }
  std::ifstream file(log);
  CHECK(std::distance(std::istream_iterator<std::string>(file), {}) == rounds * static_cast<int>(sets.size()));
}

TEST_CASE("all or none: with one of them busy nothing is held, the command does not start, and the busy one is named") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("b", {.label = "web3"});
  REQUIRE(lock);
  for (const std::vector<std::string>& patience :
       {std::vector<std::string>{"-n"}, {"-w", "0"}, {"-w", words(1s * slowness())}}) {
    auto arguments = patience;
    arguments.insert(arguments.end(), {"a", "b", "c", "--", "echo", "started"});
    const auto busy = run(database, arguments);
    CHECK_MESSAGE(busy.code == 75, busy.out);
    CHECK_MESSAGE(busy.says("\"b\" is held by web3-"), busy.out);
    CHECK_FALSE(busy.says("started"));
    CHECK_FALSE((held(engine, "a") || held(engine, "c")));
  }
  CHECK(run(database, {"-n", "-E", "9", "c", "b", "a", "--", "true"}).code == 9);
  const auto quiet = run(database, {"-n", "-E", "0", "c", "b", "a", "--", "true"});
  CHECK(quiet.code == 0);
  CHECK(quiet.out.empty());
  // Who waits keeps none of the others busy; it comes once they are free together.
  auto waiting = dlock_at(database.url(), {"run", "a", "b", "--", "echo", "started"});
  REQUIRE(eventually([&] { return !engine.waiters("b").empty(); }));
  auto other = engine.try_lock("a");
  REQUIRE(other);
  lock->release();
  REQUIRE(eventually([&] { return !engine.waiters("a").empty(); }));
  CHECK_FALSE(held(engine, "b"));
  other->release();
  const auto ran = finish(waiting);
  CHECK_MESSAGE(ran.code == 0, ran.out);
  CHECK(ran.says("started"));
}

TEST_CASE("a signal ends a wait for several names, and the command never starts") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("b");
  REQUIRE(lock);
  auto waiting = dlock_at(database.url(), {"run", "a", "b", "--", "echo", "started"});
  REQUIRE(eventually([&] { return !engine.waiters("b").empty(); }));
  waiting.signal(SIGTERM);
  const auto ran = finish(waiting);
  CHECK(ran.code == 128 + SIGTERM);
  CHECK_FALSE(ran.says("started"));
}

TEST_CASE("the loss of one name ends the command, and the others are free when it has ended") {
  Database database;
  auto engine = database.engine();
  TemporaryFolder folder;
  const auto path = folder.path() + "/status.json";
  int known = 0;
  for (const std::string lost : {"a", "b", "c"}) {
    CAPTURE(lost);
    auto child = dlock_at(database.url(),
                          {"run", "--renew-every", "200ms", "--status-file", path, "c", "a", "b", "--", "sh", "-c",
                           "trap 'echo told; exit 3' TERM; echo $$; "
                           "while :; do sleep 0.02; done"});
    const auto pid = first_pid(child);
    REQUIRE(pid > 0);
    const auto token = engine.inspect(lost)->token;
    REQUIRE(engine.force_release(lost, token));
    const auto ran = finish(child);
    CHECK(ran.code == 79);
    CHECK_MESSAGE(ran.says("told"), ran.out);
    const auto told = fmt::format("the lock \"{}\" (token {}) ", lost, number(token));
    // Why it is lost is asked for within a second, which may be too little in a crowd.
    const bool said = ran.says(told + "was released by force");
    CHECK_MESSAGE((said || ran.says(told + "is no longer ours")), ran.out);
    known += said ? 1 : 0;
    CHECK_FALSE(running(pid));
    CHECK(eventually([&] { return database.admin().held() == 0; }));
    std::ifstream file(path);
    const auto status = Json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
    CHECK(status["outcome"] == "lost");
    CHECK(status["token"].is_null());
    CHECK(status["tokens"].size() == 3);
    CHECK(status["tokens"][lost] == number(token));
  }
  CHECK(known > 0);
}

TEST_CASE(
    "a run of several names that was frozen past its leases kills its command first, and one that is killed too") {
  Database database;
  auto engine = database.engine();
  auto frozen = sleeping(database, {"--ttl", words(3s * slowness()), "a", "b"});
  const auto pid = first_pid(frozen);
  REQUIRE(pid > 0);
  frozen.signal(SIGSTOP);
  REQUIRE(eventually([&] { return !held(engine, "a") && !held(engine, "b"); }));
  frozen.signal(SIGCONT);
  CHECK(finish(frozen).code == 79);
  CHECK_FALSE(running(pid));
  auto killed = sleeping(database, {"a", "b"});
  const auto other = first_pid(killed);
  REQUIRE(other > 0);
  killed.signal(SIGKILL);
  CHECK(eventually([&] { return !running(other); }));
  CHECK(killed.wait() == killed_by(SIGKILL));
  for (const auto* name : {"a", "b"}) free_by_force(engine, name);
}

TEST_CASE("a run inside of one that holds any of its names is refused; with other names it is of the same job") {
  Database database;
  const auto inner = [&](const std::string& options) {
    return run(database, {"a", "b", "-c", "exec '" + path::tool("dlock") + "' run " + options});
  };
  for (const std::string options : {"b c -- true", "c a -- true", "b -- true", "--shared a -- true"}) {
    const auto refused = inner(options);
    CHECK_MESSAGE(refused.code == 125, refused.out);
    CHECK_MESSAGE(refused.says("is held by a dlock run around this one"), refused.out);
  }
  const auto around =
      dlock_tool(database.url(), {"run", "b", "--", path::tool("dlock"), "run", "a", "b", "--", "true"});
  CHECK_MESSAGE((around.code == 125 && around.says("would deadlock")), around.out);
  const auto third = inner("c d -- '" + path::tool("dlock") + "' run e a -- true");
  CHECK_MESSAGE((third.code == 125 && third.says("\"a\" (token")), third.out);
  // It inherits nothing of the run around it but the job.
  const auto ran = inner("d c -c 'echo \"$DLOCK_GRANTS\" | sed \"s/ .* / /\"; echo \"${DLOCK_TOKEN-none}.\"'");
  CHECK_MESSAGE(ran.code == 0, ran.out);
  CHECK_MESSAGE(ran.says("2 c\n2 d\nnone.\n"), ran.out);
  const auto single = dlock_tool(database.url(), {"run", "x", "--", path::tool("dlock"), "run", "y", "z", "-c",
                                                  "echo ${DLOCK_NAME-none} ${DLOCK_TOKEN-none} ${DLOCK_OWNER-none}"});
  CHECK_MESSAGE(single.says("none none none"), single.out);
}

TEST_CASE("two jobs that hold one name each and want the other's together with a third are told of the deadlock") {
  Database database;
  TemporaryFolder folder;
  const auto nested = [&](const std::string& outer, const std::string& inner) {
    // Both hold their first name before either asks for its second.
    return dlock_at(database.url(),
                    {"run", outer, "-c",
                     "touch " + folder.path() + "/" + outer + "; while ! test -e " + folder.path() + "/" + inner +
                         "; do sleep 0.02; done; exec '" + path::tool("dlock") + "' run third " + inner + " -- true"});
  };
  auto one = nested("x", "y"), two = nested("y", "x");
  const auto first = finish(one), second = finish(two);
  const auto &victim = first.code != 0 ? first : second, &other = first.code != 0 ? second : first;
  CHECK_MESSAGE(victim.code == 125, victim.out);
  CHECK_MESSAGE(victim.says("deadlock: "), victim.out);
  CHECK_MESSAGE(other.code == 0, other.out);
}

TEST_CASE("--at-least closes every name, --fifo waits in turn, and --yield-signal tells of who waits for any") {
  Database database;
  auto engine = database.engine();
  CHECK(run(database, {"-n", "--at-least", "1h", "a", "b", "--", "true"}).code == 0);
  for (const std::string name : {"a", "b"}) CHECK(engine.inspect(name)->state == State::closed);
  auto child =
      dlock_at(database.url(), {"run", "--fifo", "--renew-every", "200ms", "--yield-signal", "USR1", "c", "d", "e",
                                "--", "sh", "-c", "trap 'exit 7' USR1; echo $$; while :; do sleep 0.02; done"});
  REQUIRE(first_pid(child) > 0);
  auto next = dlock_at(database.url(), {"run", "--fifo", "f", "d", "--", "echo", "mine"});
  const auto ran = finish(child);
  CHECK_MESSAGE(ran.code == 7, ran.out);
  const auto after = finish(next);
  CHECK_MESSAGE((after.code == 0 && after.says("mine")), after.out);
}

TEST_CASE("what several names cannot have is refused in one line that says the rule, and what is one name is one") {
  Database database;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"--shared", "a", "b", "--", "true"}, "--shared is for one name: several names are taken alone"},
      {{"--limit", "3", "a", "b", "--", "true"}, "--limit is for one name"},
      {{"--limit", "3", "--permits", "2", "a", "b", "--", "true"}, "--limit is for one name"},
      {{"--permits", "2", "a", "b", "--", "true"}, "--permits is for one name"},
      {{"a", "b\nc", "--", "true"}, "\"b\\x0ac\" has a line break"},
      {{"a", "", "--", "true"}, "the lock name \"\" is empty"},
      {{"a", std::string(256, 'x'), "--", "true"}, "256 bytes"},
      {{"a", "b"}, "\"b\" is one word too many"},
      {{"a", "b", "--"}, "there is no command"},
      {{"a", "b", "--nonblok", "--", "true"}, "there is no option \"--nonblok\""},
      {{"a", "b", "-c", "true", "--", "true"}, "exclude each other"},
  };
  for (const auto& [arguments, text] : cases) {
    const auto ran = run(database, arguments);
    CHECK_MESSAGE(ran.code == 125, ran.out);
    CHECK_MESSAGE(ran.says(text), ran.out);
    CHECK_MESSAGE(ran.lines() == 1, ran.out);
  }
  CHECK(database.engine().list().empty());
  CHECK(run(database, {"--shared", "a", "a", "--", "true"}).code == 0);
  CHECK(run(database, {"a", "list", "-c", "exit 6"}).code == 6);
  const auto echo = run(database, {"[a,b]", "--", "sh", "-c", "echo \"$DLOCK_NAME.\""});
  CHECK_MESSAGE((echo.code == 0 && echo.says("[a,b].")), echo.out);
  const auto lines = run(database, {"a\nb", "--", "sh", "-c", "echo \"${DLOCK_GRANTS-none}, $DLOCK_TOKEN\""});
  CHECK_MESSAGE((lines.code == 0 && lines.says("none, 1")), lines.out);
}
