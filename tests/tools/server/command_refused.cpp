// The exit codes of every command when the server is away, or says no.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/json.hpp"
#include "tools/command.hpp"

#include "types/url.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

#include <algorithm>
#include <string>
#include <utility>
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

Child start(const std::string& url, std::vector<std::string> command) {
  command.insert(command.begin() + 1, {"--format", "json"});
  return dlock_at(url, std::move(command), "2>&1 >/dev/null </dev/null");
}

// Waits for its end, and answers its message.
std::string refusal_of(Child& child, const std::string& command, int code, const std::string& word) {
  const auto ran = finish(child);
  CHECK_MESSAGE(ran.code == (command == "run" ? 125 : code), command << ": " << ran.out);
  const auto object = ran.out.find('{');  // a note may stand before it
  const auto error = Json::parse(object == std::string::npos ? "" : ran.out.substr(object));
  REQUIRE_MESSAGE(error.contains("error"), command << ": " << ran.out);
  CHECK_MESSAGE(error["error"]["code"] == word, command << ": " << ran.out);
  return error["error"]["message"].text();
}

void check(const std::string& url, const Row& row, int code, const std::string& word) {
  auto child = start(url, row.command);
  refusal_of(child, row.command.front(), code, word);
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

TEST_CASE(
    "while the table is locked acquire -n is exit code 8 and run -n 125, never busy, and both say what is in the way") {
  ServerDatabase database;
  const auto url = database->url();
  database->engine().try_lock("job").reset();
  for (const auto& how : database.server().table_locks("resource_lock")) {
    CAPTURE(how.name);
    Admin other(database.server());
    for (const auto& sql : how.lock) other.run(sql);
    // One after the other: who looks for what is in the way locks the row for a moment, which is busy to the other.
    for (const auto& [command, code] :
         {std::pair(std::vector<std::string>{"acquire", "-n", "--connect-timeout", "5s", "job", "--ttl", "1m"}, 8),
          std::pair(std::vector<std::string>{"run", "-n", "--connect-timeout", "5s", "job", "--", "true"}, 125)}) {
      std::string text;
      const auto asked = [&] {
        auto child = start(url, command);
        text = refusal_of(child, command.front(), code, "unreachable");
        return text.find(how.told) != std::string::npos;
      };
      CHECK_MESSAGE(eventually(asked), text);  // in a crowd the answer to a look may be late
      // Who cannot even read the table comes no further than to open it.
      if (how.reads) CHECK_MESSAGE(text.find("\"job\"") != std::string::npos, text);
    }
    other.run(how.unlock);
  }
  CHECK(dlock_tool(url, {"run", "-n", "job", "--", "true"}).code == 0);
}

TEST_CASE("check --role names every right that is missing, and a view that a role may not see is not missing") {
  ServerDatabase database;
  const auto url = database.server().url_of_role({});
  const auto role = Url::parse(url).user.value();
  const auto grant = [&](schema::Role of, std::size_t skipped) {
    auto text = schema::grants(database->url(), of, role);
    for (std::size_t i = 0, end = 0; (end = text.find(';')) != std::string::npos; ++i, text.erase(0, end + 1))
      if (i != skipped) database->admin().run(text.substr(0, end));
  };
  const auto statements = [&](schema::Role of) {
    const auto text = schema::grants(database->url(), of, role);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), ';'));
  };
  const auto last = statements(schema::Role::runtime) - 1;  // of the history
  grant(schema::Role::runtime, last);
  const auto lacking = migrate({"check", "--role", "runtime", "-u", url});
  CHECK_MESSAGE(lacking.code == 9, lacking.out);
  CHECK_MESSAGE(lacking.says("resource_lock_schema_history"), lacking.out);
  grant(schema::Role::runtime, last + 1);
  for (const auto& command :
       std::vector<std::vector<std::string>>{{"check"}, {"check", "--role", "runtime"}, {"status"}}) {
    auto at = command;
    at.insert(at.end(), {"-u", url});
    const auto ran = migrate(at);
    CHECK_MESSAGE(ran.code == 0, ran.out);
  }
  const auto reader = migrate({"check", "--role", "read-only", "-u", url});
  CHECK_MESSAGE(reader.code == 9, reader.out);
  CHECK_MESSAGE(reader.says("SELECT on resource_lock_status"), reader.out);
  grant(schema::Role::read_only, 100);
  CHECK(migrate({"check", "--role", "read-only", "-u", url}).code == 0);
  const auto only_reads = database.server().url_of_role({"SELECT"});
  const auto writes = migrate({"check", "--role", "runtime", "-u", only_reads});
  CHECK(writes.code == 9);
  for (const std::string right : {"INSERT on resource_lock,", "UPDATE on resource_lock,", "DELETE on resource_lock,",
                                  "INSERT on resource_lock_waiter", "DELETE on resource_lock_holder", "GRANT "})
    CHECK_MESSAGE(writes.says(right), writes.out);
  CHECK(!writes.says("SELECT on"));
  CHECK(migrate({"check", "--role", "read-only", "-u", only_reads}).code == 0);
  CHECK(migrate({"check", "--role", "owner", "-u", only_reads}).code == 2);

  REQUIRE(migrate({"history", "--apply", "-u", database->url()}).code == 0);
  const auto unread = migrate({"check", "--role", "runtime", "-u", url});
  // MySQL shows nobody a table without a right on it.
  if (unread.code != 0)
    CHECK_MESSAGE((unread.code == 9 && unread.says("resource_lock_history\" TO the role")), unread.out);
  grant(schema::Role::runtime, 100);
  CHECK(migrate({"check", "--role", "runtime", "-u", url}).code == 0);
  CHECK(dlock_tool(url, {"history", "job"}).code == 3);  // nobody has had it
}
