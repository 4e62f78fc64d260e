// The exit codes of the single commands, row by row.
#include "command.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/json.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

#include <csignal>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

const std::vector<std::vector<std::string>> commands{
    {"list"},
    {"inspect", "job"},
    {"top", "-n", "1"},
    {"acquire", "-n", "job", "--ttl", "1m"},
    {"renew", "job", "--token", "1"},
    {"release", "job", "--token", "1"},
    {"release", "job", "--force", "--expect-token", "1", "--yes"},
    {"reap"},
    {"remove", "job"},
    {"run", "-n", "job", "--", "true"},
};

std::vector<std::string> with(std::vector<std::string> command, std::vector<std::string> more) {
  command.insert(command.begin() + 1, more.begin(), more.end());
  return command;
}

}  // namespace

TEST_CASE("a table that is missing is exit code 7 of every command, and 125 of run; the message says what to run") {
  Database database;
  for (const auto& command : commands) {
    const auto ran = dlock_tool(database.url(), with(command, {"--table", "nowhere"}));
    CHECK_MESSAGE(ran.code == (command[0] == "run" ? 125 : 7), command[0] << ": " << ran.out);
    CHECK_MESSAGE(ran.says("dlock-migrate"), command[0] << ": " << ran.out);
  }
}

TEST_CASE("an acquire that waits ends with 128 + n at a signal, and takes nothing") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  auto child = dlock_at(database.url(), {"acquire", "job", "--ttl", "1m"});
  REQUIRE(eventually(
      [&] { return database.admin().number("SELECT wanted_until FROM resource_lock WHERE name = 'job'") > 0; }));
  child.signal(SIGTERM);
  CHECK(finish(child).code == 128 + SIGTERM);
  CHECK(engine.inspect("job")->token == lock->token());
}

TEST_CASE("with --format json every no is an object on standard error, and standard output stays empty") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  struct {
    std::vector<std::string> command;
    int code;
    std::string word;
  } const rows[]{
      {{"acquire", "-n", "job", "--ttl", "1m"}, 75, "busy"},
      {{"renew", "job", "--token", "999"}, 3, "no"},
      {{"release", "job", "--token", "999"}, 3, "no"},
      {{"inspect", "other"}, 3, "no"},
      {{"list", "--state", "odd"}, 2, "usage"},
      {{"lsit"}, 2, "usage"},
      {{"list", "--nope"}, 2, "usage"},
      {{"run"}, 125, "usage"},
  };
  for (const auto& [command, code, word] : rows) {
    const auto said = dlock_tool(database.url(), with(command, {"--format", "json"}), "2>&1 >/dev/null </dev/null");
    CHECK_MESSAGE(said.code == code, said.out);
    CHECK(Json::parse(said.out)["error"]["code"] == word);
    CHECK(dlock_tool(database.url(), with(command, {"--format", "json"}), "2>/dev/null </dev/null").out.empty());
  }
}

TEST_CASE("a result that could not be written is exit code 1, and said; what took a lock for it gives it back") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  for (const std::string lost : {">/dev/full", ">&-"}) {
    CAPTURE(lost);
    const auto streams = "2>&1 " + lost + " </dev/null";
    for (const auto& command : std::vector<std::vector<std::string>>{{"list"},
                                                                     {"inspect", "job"},
                                                                     {"top", "-b", "-n", "1"},
                                                                     {"list", "--format", "json"},
                                                                     {"graph"},
                                                                     {"--help"},
                                                                     {"--version"}}) {
      const auto ran = dlock_tool(database.url(), command, streams);
      CHECK_MESSAGE(ran.code == 1, command[0] << ": " << ran.out);
      CHECK_MESSAGE(ran.says("could not be written to standard output"), command[0] << ": " << ran.out);
      CHECK(ran.lines() == 1);
    }
    CHECK(dlock_tool(database.url(), {"run", "--help"}, streams).code == 125);
    const auto taken = dlock_tool(database.url(), {"acquire", "other", "--ttl", "1m"}, streams);
    CHECK_MESSAGE(taken.code == 1, taken.out);
    CHECK(engine.inspect("other")->state == State::free);
    for (const auto& command : std::vector<std::vector<std::string>>{
             {"check"}, {"status"}, {"plan", "--format", "json"}, {"dump"}, {"--help"}}) {
      auto at = command;
      at.insert(at.end(), {"-u", database.url()});
      const auto ran = migrate(at, {}, streams);
      CHECK_MESSAGE(ran.code == 1, command[0] << ": " << ran.out);
      CHECK_MESSAGE(ran.says("could not be written to standard output"), command[0] << ": " << ran.out);
    }
    const auto printed = migrate({"sql", "--dialect", schema::dialects().front()}, {}, streams);
    CHECK_MESSAGE(printed.code == 1, printed.out);
  }
}
