// The promise that a process without threads or descriptors to spare gets an answer, is never ended by the library, and
// goes on as if nothing had been once there are some again.
#include "support/child.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

class Process {
 public:
  explicit Process(const std::string& url) : child_(hampered(url, 3s * slowness())) {}

  // The answer of the line; the words it says by itself are kept.
  std::string ask(const std::string& line) {
    if (ended_) return *ended_;
    child_.tell(line);
    for (;;) {
      auto answer = child_.line();
      if (!answer) return ended_.emplace("it has ended: " + child_.wait().text());
      const bool by_itself =
          answer->starts_with("told ") || answer->starts_with("granted ") || answer->starts_with("leads ");
      if (!by_itself) return *answer;
      said_.push_back(*answer);
    }
  }
  // Whether it says so by itself.
  bool says(const std::string& words) {
    return eventually([&] {
      if (std::find(said_.begin(), said_.end(), words) != said_.end()) return true;
      static_cast<void>(ask("count"));
      return false;
    });
  }
  void check(const std::string& line, const std::string& answer) {
    const auto got = ask(line);
    CHECK_MESSAGE(got == answer, line << " -> " << got);
  }
  // What it answers with a number; -1 if it has ended.
  long number(const std::string& line) {
    const auto answer = ask(line);
    return ended_ ? -1 : std::stol(answer);
  }
  long count() { return number("count"); }

 private:
  Child child_;
  std::optional<std::string> ended_{};
  std::vector<std::string> said_;
};

bool is_wanted(Database& database) {
  return database.admin().number("SELECT count(*) FROM resource_lock WHERE name = 'job' AND wanted_until > 0") == 1;
}

// Whether it is told that nothing is available for want of a thread.
void check_no_thread(Process& process, const std::string& line) {
  const auto answer = process.ask(line);
  CHECK_MESSAGE(answer.starts_with("unavailable: "), line << " -> " << answer);
  CHECK_MESSAGE(answer.find("thread") != std::string::npos, line << " -> " << answer);
}

bool says(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("without a thread to keep it a lease is not asked for, and is once there is one") {
  Database database;
  Process process(database.url());
  process.check("open patient", "open");
  process.check("threads no", "ok");
  const auto answer = process.ask("try job long");
  CHECK_MESSAGE(answer.starts_with("unavailable: "), answer);
  CHECK(says(answer, "thread"));
  CHECK(database.admin().owner("job").empty());
  process.check("threads yes", "ok");
  process.check("try job long", "granted");
  process.check("check job", "valid");
  const auto end = database.admin().expires_at("job");
  CHECK(eventually([&] { return database.admin().expires_at("job") > end; }));  // it is kept
  CHECK(process.ask("release job").starts_with("freed"));
}

TEST_CASE("without a thread to reap an engine is not opened, and once there is one it opens and reaps") {
  Database database;
  {
    auto other = database.engine();
    auto left = other.try_lock("left", {.lease = 10min, .renew = false});
    REQUIRE(left);
    left->detach();
  }
  database.admin().expire("left");
  Process process(database.url());
  process.check("threads no", "ok");
  check_no_thread(process, "open reaping patient");
  process.check("threads yes", "ok");
  process.check("open reaping patient", "open");
  CHECK(eventually([&] { return database.admin().owner("left").empty(); }));
  process.check("try job long", "granted");
  CHECK(process.ask("release job").starts_with("freed"));
}

TEST_CASE("without a thread to campaign nobody is a candidate, and once there is one the next is elected") {
  Database database;
  Process process(database.url());
  process.check("open patient", "open");
  process.check("threads no", "ok");
  check_no_thread(process, "elect office");
  process.check("threads yes", "ok");
  CHECK(database.admin().owner("office").empty());
  process.check("elect office", "ok");
  CHECK(process.says("leads office"));
  CHECK_FALSE(database.admin().owner("office").empty());
  process.check("resign office", "resigned");
  CHECK(eventually([&] { return database.admin().owner("office").empty(); }));
}

TEST_CASE("without a thread for asynchronous calls none is begun, and once there is one they are answered") {
  Database database;
  Process process(database.url());
  process.check("open patient", "open");
  process.check("threads no", "ok");
  check_no_thread(process, "async job");
  process.check("threads yes", "ok");
  CHECK(database.admin().owner("job").empty());
  process.check("async job", "ok");
  CHECK(process.says("granted job"));
  CHECK(process.ask("release job").starts_with("freed"));
}

TEST_CASE("a loss is told as soon as there is a thread for its callbacks") {
  Database database;
  Process process(database.url());
  process.check("open patient", "open");
  process.check("try job long", "granted");
  process.check("watch job", "ok");
  process.check("threads no", "ok");
  auto other = database.engine();
  free_by_force(other, "job");
  CHECK(eventually([&] { return process.ask("check job") == "lost"; }));
  CHECK(eventually([&] { return process.number("refused") > 1; }));  // at once, and when that was looked after
  process.check("threads yes", "ok");
  CHECK(process.says("told job"));
}

TEST_CASE("a waiter that can have no thread to listen looks by itself, and listens as soon as it can") {
  Database database;
  auto other = database.engine();
  auto lock = other.lock("job");
  Process process(database.url());
  process.check("open patient", "open");
  process.check("try mine long", "granted");  // the threads that keep leases are there
  const auto threads = process.count();
  process.check("threads no", "ok");
  process.check("wait job", "ok");
  CHECK(eventually([&] { return is_wanted(database); }));
  CHECK(process.count() == threads);
  process.check("threads yes", "ok");
  CHECK(eventually([&] { return process.count() > threads; }));
  CHECK(lock.release() == Released::freed);
  CHECK(process.says("granted job"));
  CHECK(process.ask("release job").starts_with("freed"));
  CHECK(process.ask("release mine").starts_with("freed"));
}

TEST_CASE("without a descriptor to spare an engine answers that nothing is available, and what it has open works on") {
  Database database;
  Process process(database.url());
  process.check("descriptors no", "ok");
  const auto answer = process.ask("open patient");
  CHECK_MESSAGE(answer.starts_with("unavailable: "), answer);
  process.check("descriptors yes", "ok");
  process.check("open patient", "open");
  process.check("try mine long", "granted");

  auto other = database.engine();
  auto lock = other.lock("job");
  process.check("descriptors no", "ok");
  process.check("wait job", "ok");  // what listens needs a connection
  CHECK(eventually([&] { return is_wanted(database); }));
  process.check("check mine", "valid");
  CHECK(lock.release() == Released::freed);
  CHECK(process.says("granted job"));  // by looking
  CHECK(process.ask("release job").starts_with("freed"));
  process.check("descriptors yes", "ok");
  process.check("try job long", "granted");
  CHECK(process.ask("release job").starts_with("freed"));
  CHECK(process.ask("release mine").starts_with("freed"));
}

TEST_CASE("however few descriptors there are, an engine opens and grants, or answers that nothing is available") {
  constexpr int more_than_enough = 16;
  Database database;
  Process process(database.url());
  for (int spare = 0; spare <= more_than_enough; ++spare) {
    CAPTURE(spare);
    process.check("descriptors " + std::to_string(spare), "ok");
    const auto opened = process.ask("open patient");
    const auto granted = opened == "open" ? process.ask("try job long") : opened;
    process.check("descriptors yes", "ok");
    if (granted == "granted") CHECK(process.ask("release job").starts_with("freed"));
    else CHECK_MESSAGE(granted.starts_with("unavailable: "), granted);
    if (spare == more_than_enough) CHECK(granted == "granted");
    process.check("close", "closed");
  }
}

TEST_CASE("opening a database leaves the process's signals as they were") {
  Database database;
  Process process(database.url());
  process.check("open patient", "open");
  process.check("try job long", "granted");
  process.check("signals", "same");
  CHECK(process.ask("release job").starts_with("freed"));
}
