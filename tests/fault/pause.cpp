// What becomes of a lock whose holder is stopped, or killed.
#include "support/child.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <csignal>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a process that was stopped past its lease knows of the loss at its first instruction, and frees nothing") {
  Database database;
  auto engine = database.engine();
  Child holder(worker({"hold", database.url(), "job", std::to_string(3000 * slowness()), "0"}));
  const auto token = holder.line();
  REQUIRE(token);
  holder.tell("check");
  CHECK(holder.line() == "valid");
  // Never stopped inside a write of its own: on a database with one writer it would stop everybody. Its renewals are
  // half a second apart at least.
  const auto end = database.admin().expires_at("job");
  REQUIRE(eventually([&] { return database.admin().expires_at("job") > end; }));
  holder.signal(SIGSTOP);
  const auto next = engine.try_lock_for("job", 2min);
  REQUIRE(next);
  CHECK(number(next->token()) > std::stoll(*token));
  holder.tell("check");  // waits in the pipe for its first instruction
  holder.signal(SIGCONT);
  CHECK(holder.line() == "lost");
  holder.tell("release");
  CHECK(holder.line() == "was_lost");
  CHECK(database.admin().owner("job") == next->owner());
}

TEST_CASE("the lock of a killed process is taken over when its lease has ended") {
  Database database;
  auto engine = database.engine({.polling = {.longest = 50ms}});
  const auto lease = 4000ms * slowness();
  Child holder(worker({"hold", database.url(), "job", std::to_string(lease.count()), "0"}));
  REQUIRE(holder.line());
  const Stopwatch time;
  holder.signal(SIGKILL);
  holder.wait();
  CHECK_FALSE(engine.try_lock("job"));
  CHECK(engine.try_lock_for("job", 2min).has_value());
  CHECK(time.elapsed() < lease + 2s * slowness());
}
