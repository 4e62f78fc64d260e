// This file knows the exit codes of every command when the server is away, or says no.
#include "support/database.hpp"
#include "support/json.hpp"
#include "tools/command.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;

namespace {

struct Row {
  std::vector<std::string> command;
  bool writes;
};

const std::vector<Row> rows{
    {{"list"}, false},
    {{"inspect", "job"}, false},
    {{"top", "-n", "1"}, false},
    {{"acquire", "-n", "other", "--ttl", "1m"}, true},
    {{"renew", "job", "--token", "1"}, true},
    {{"release", "job", "--token", "1"}, true},
    {{"release", "job", "--force", "--expect-token", "1", "--yes"}, true},
    {{"reap"}, true},
    {{"run", "-n", "other", "--", "true"}, true},
};

void check(const std::string& url, const Row& row, int code, const std::string& word) {
  const bool run = row.command.front() == "run";
  auto command = row.command;
  command.insert(command.begin() + 1, {"--format", "json"});
  const auto ran = dlock_tool(url, command, "2>&1 >/dev/null </dev/null");
  CHECK_MESSAGE(ran.code == (run ? 125 : code), command[0] << ": " << ran.out);
  const auto object = ran.out.find('{');  // a note may stand before it
  const auto error = Json::parse(object == std::string::npos ? "" : ran.out.substr(object));
  REQUIRE_MESSAGE(error.contains("error"), command[0] << ": " << ran.out);
  CHECK_MESSAGE(error["error"]["code"] == word, command[0] << ": " << ran.out);
}

}  // namespace

TEST_CASE("a server that is away is exit code 8 of every command, and 125 of run") {
  ServerDatabase database;
  auto url = database.server().url_at({"127.0.0.1", 1});
  for (const auto& row : rows) check(url, row, 8, "unreachable");
}

TEST_CASE("a right that is missing is exit code 9 of every command that needs it, and 125 of run") {
  ServerDatabase database;
  auto engine = database->engine();
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  const auto reader = database.server().url_of_role({"SELECT"});
  for (const auto& row : rows) {
    if (row.writes) check(reader, row, 9, "permission");
    else CHECK(dlock_tool(reader, row.command).code == 0);
  }
}
