// The promise that a signal ends dlock also while nobody reads what it prints.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/rows.hpp"
#include "tools/processes.hpp"
#include "tools/unread_pipe.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

constexpr int many = 40;

// Together more than the pipe takes.
std::string long_name() { return std::string(120, 'n') + "/"; }

void abandon_leases(Admin& admin) { add_old_rows(admin, long_name(), many, 1, true); }

}  // namespace

TEST_CASE("a signal ends reap while it prints what nobody reads") {
  for (const char* format : {"text", "json"})
    for (const int signal : {SIGINT, SIGTERM}) {
      CAPTURE(std::string(format));
      CAPTURE(signal);
      Database database;
      abandon_leases(database.admin());
      const UnreadPipe pipe;
      auto child = pipe.dlock_into(database.url(), {"reap", "--grace", "50ms", "--format", format});
      REQUIRE(eventually([&] { return pipe.has_something(); }));
      CHECK(database.admin().held() == 0);
      child.signal(signal);
      CHECK(end_of(child) == 128 + signal);
    }
}

TEST_CASE("reap that a signal has stopped ends without another one, though nobody reads what it had settled") {
  Database database;
  abandon_leases(database.admin());
  constexpr std::int64_t above = 1000;
  add_old_rows(database.admin(), "old/", 1, above);
  const UnreadPipe pipe;
  auto child = pipe.dlock_into(database.url(), {"reap"});
  REQUIRE(eventually([&] { return database.admin().floor() >= Token{above}; }));  // next it waits out the grace
  child.signal(SIGTERM);
  CHECK(end_of(child) == 128 + SIGTERM);
  CHECK(pipe.has_something());
  CHECK(database.admin().held() == 0);
}

TEST_CASE("a signal ends reap that has failed while it prints what nobody reads") {
  Database database;
  abandon_leases(database.admin());
  const auto last = row_name(long_name(), many - 1);
  // After its last token there is none.
  database.admin().run("UPDATE resource_lock SET token = 9223372036854775807 WHERE name = '" + last + "'");
  const UnreadPipe pipe;
  auto child = pipe.dlock_into(database.url(), {"reap"});
  REQUIRE(eventually([&] { return pipe.has_something(); }));
  CHECK(database.admin().held() == 1);
  child.signal(SIGTERM);
  CHECK(end_of(child) == 128 + SIGTERM);
  database.admin().run("UPDATE resource_lock SET owner = NULL, token = 1 WHERE name = '" + last + "'");
}

TEST_CASE("a signal ends run that cannot say what became of it, and the lock is free by then") {
  for (const char* command : {"true", "false"}) {
    Database database;
    UnreadPipe pipe;
    pipe.fill();
    auto child = dlock_at(database.url(), {"run", "job", "--status-file", pipe.path(), "--", command}, "2>/dev/null");
    REQUIRE(eventually([&] { return database.admin().token("job") > Token{}; }));
    REQUIRE(eventually([&] { return database.admin().owner("job").empty(); }));
    child.signal(SIGTERM);
    CHECK(end_of(child) == 128 + SIGTERM);
  }
}

TEST_CASE("what nobody reads keeps no command alive beyond --max-runtime, nor its lock") {
  Database database;
  UnreadPipe pipe;
  pipe.fill();
  const Stopwatch time;
  auto child = dlock_at(database.url(),
                        {"run", "--max-runtime", words(1s * slowness()), "-k", "200ms", "--ttl", "5m", "job", "--",
                         "sh", "-c", "trap '' TERM; echo $$; while :; do sleep 0.02; done"},
                        "2>'" + pipe.path() + "'");
  const auto command = static_cast<pid_t>(std::stol(child.line().value_or("0")));
  REQUIRE(command > 0);
  CHECK(eventually([&] { return !running(command); }, 15s * slowness()));
  CHECK(eventually([&] { return database.admin().held() == 0; }, 15s * slowness()));
  CHECK(child.running());  // with a line that nobody reads
  child.signal(SIGTERM);
  CHECK(end_of(child) == 128 + SIGTERM);
}

TEST_CASE("acquire that has no time to give back what nobody reads says that it may be held still") {
  Database database;
  const TemporaryFolder folder;
  const auto said = folder.path() + "/said";
  UnreadPipe pipe;
  pipe.fill();
  auto child = dlock_at(database.url(), {"acquire", "job", "--ttl", "1h"}, "2>'" + said + "' >'" + pipe.path() + "'");
  REQUIRE(eventually([&] { return database.admin().held() == 1; }));
  database.admin().block("job");
  child.signal(SIGTERM);
  CHECK(end_of(child) == 128 + SIGTERM);
  std::ifstream file(said);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK_MESSAGE(text.find("may be held still") != std::string::npos, text);
  database.admin().unblock();
  database.admin().run("UPDATE resource_lock SET owner = NULL WHERE name = 'job'");
}

TEST_CASE("a signal ends acquire while it prints a token that nobody reads, and the lock is free again") {
  for (const char* ttl : {"1h", "until-released"}) {
    CAPTURE(std::string(ttl));
    Database database;
    UnreadPipe pipe;
    pipe.fill();
    auto child = pipe.dlock_into(database.url(), {"acquire", "job", "--ttl", ttl});
    REQUIRE(eventually([&] { return database.admin().held() == 1; }));
    child.signal(SIGTERM);
    CHECK(end_of(child) == 128 + SIGTERM);
    // In a crowd the database may need longer than the second there is for it.
    CHECK((database.admin().held() == 0 || slowness() > 1));
    database.admin().run("UPDATE resource_lock SET owner = NULL WHERE name = 'job'");
  }
}
