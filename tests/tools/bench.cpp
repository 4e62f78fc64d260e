// This file knows that dlock-bench measures what it says, not how fast anything is.
#include "migrate.hpp"
#include "support/database.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <iterator>

using namespace dlock;
using namespace dlock::test;

namespace {

Ran bench(const std::string& url, std::vector<std::string> arguments, const std::string& streams = "2>&1 </dev/null") {
  std::vector<std::string> command{"/bin/sh", "-c", "exec \"$0\" \"$@\" " + streams, DLOCK_TEST_BIN "/dlock-bench"};
  command.insert(command.end(), std::make_move_iterator(arguments.begin()), std::make_move_iterator(arguments.end()));
  Child child(command, {"DLOCK_URL=" + url});
  return finish(child);
}

// What it prints as JSON. A server that forgets is warned of on the other stream.
nlohmann::json measured(const std::string& url, std::vector<std::string> arguments) {
  arguments.push_back("--json");
  const auto ran = bench(url, std::move(arguments), "2>/dev/null </dev/null");
  REQUIRE_MESSAGE(ran.code == 0, ran.out);
  return nlohmann::json::parse(ran.out);
}

}  // namespace

TEST_CASE("a pair runs on the engine and on its raw peer") {
  const Database database;
  const auto json = measured(database.url(), {"pair", "--against", "raw", "--seconds", "200ms"});
  CHECK(json["dlock"]["pairs"] > 0);
  CHECK(json["raw"]["pairs"] > 0);
  CHECK(json["ratio"] > 0);
}

TEST_CASE("a handoff is timed for a waiter that listens and for one that polls, and no wait ends early") {
  const Database database;
  const auto json = measured(database.url(), {"handoff", "--seconds", "1ms"});
  for (const char* contender : {"listening", "polling"}) {
    CHECK(json[contender]["times"] == 1);
    CHECK(json[contender]["p50_us"] > 0);
  }
  CHECK(json["commit"]["times"] > 0);
  CHECK(json["deadline"]["p50_us"] >= 0);
  CHECK(json["stop"]["p50_us"] >= 0);
  CHECK(json["early"] == false);
}

TEST_CASE("everybody in a herd has the lock once") {
  const Database database;
  const auto json = measured(database.url(), {"herd", "--threads", "5", "--processes", "2", "--seconds", "200ms"});
  CHECK(json["threads"]["waiters"] == 5);
  CHECK(json["processes"]["waiters"] == 2);
  CHECK(json["held"]["connections"] > 0);
  CHECK(json["wrong"] == "");
}

TEST_CASE("a herd with tickets has the lock in their order") {
  const Database database;
  const auto json =
      measured(database.url(), {"herd", "--fifo", "--threads", "3", "--processes", "2", "--seconds", "200ms"});
  CHECK(json["fifo"] == true);
  CHECK(json["threads"]["waiters"] == 3);
  CHECK(json["processes"]["waiters"] == 2);
  CHECK(json["wrong"] == "");
}

TEST_CASE("a name that somebody holds is not measured, and wrong numbers are refused in one line") {
  const Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("dlock-bench/herd");
  REQUIRE(lock);
  const auto busy = bench(database.url(), {"herd", "--threads", "1", "--processes", "0", "--seconds", "1ms"});
  CHECK(busy.code == 1);
  CHECK_MESSAGE(busy.says("is held by somebody else"), busy.out);
  lock->release();
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"herd", "--threads", "-1"}, {"herd", "--processes", "many"},
        {"herd", "--threads", "0", "--processes", "0"}, {"handoff", "--seconds", "0"}, {"pair", "--against", "else"}}) {
    const auto ran = bench(database.url(), arguments);
    CHECK(ran.code == 2);
    CHECK_MESSAGE(ran.lines() == 1, ran.out);
  }
}
