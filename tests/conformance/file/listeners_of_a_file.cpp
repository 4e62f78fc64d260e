// What is promised of listeners where the database is a file: whoever commits is heard, in any process and
// any mode, and a file that is away is said to be.
#include "support/child.hpp"
#include "support/listeners.hpp"

#include <doctest/doctest.h>

#include <filesystem>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

bool commits_are_heard(Database& database, dialects::Listener& listener) {
  while (!listener.wait({}, BootClock::now()).empty()) {}
  database.admin().run("UPDATE resource_lock SET wanted_until = wanted_until + 1 WHERE name = 'job'");
  return listener.wait({}, soon()).everything;
}

}  // namespace

TEST_CASE("a release in another process is heard") {
  Database database;
  Child holder(worker({"hold", database.url(), "job", "60000", "0"}));
  REQUIRE(holder.line());
  const auto listener = listener_of(database);
  REQUIRE(listener);
  while (!listener->wait({}, BootClock::now()).empty()) {}
  holder.tell("release");
  REQUIRE(holder.line());
  CHECK(listener->wait({}, soon()).everything);
  CHECK(database.admin().owner("job").empty());
}

TEST_CASE("commits are heard in every mode of the file, and when the mode changes") {
  Database database;
  make_wanted(database, "job");
  auto listener = listener_of(database);
  REQUIRE(listener);
  for (int i = 0; i < 5; ++i) CHECK(commits_are_heard(database, *listener));
  listener.reset();
  for (const char* mode : {"DELETE", "TRUNCATE", "PERSIST", "WAL"}) {
    INFO(mode);
    CHECK(eventually([&] { return !database.admin().text(std::string("PRAGMA journal_mode=") + mode).empty(); }));
    listener = listener_of(database);
    REQUIRE(listener);
    CHECK(commits_are_heard(database, *listener));
    CHECK(commits_are_heard(database, *listener));
    listener.reset();
  }
}

TEST_CASE("a listener of a file that was moved away says so") {
  Database database;
  const auto listener = listener_of(database);
  REQUIRE(listener);
  const auto path = database.url().substr(database.url().find(':') + 1);
  std::filesystem::rename(path, path + ".away");
  const auto says_so = [&] {
    try {
      static_cast<void>(listener->wait({}, soon(10ms)));
      return false;
    } catch (const Failure&) { return true; }
  };
  CHECK(eventually(says_so));  // the file is looked for once a millisecond
  std::filesystem::rename(path + ".away", path);
}
