// How soon a process that was stopped past its lease is told of the loss, and how often.
#include "support/child.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <ctime>
#include <sstream>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

Duration on_boot_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds{now.tv_sec} + std::chrono::floor<Duration>(std::chrono::nanoseconds{now.tv_nsec});
}

}  // namespace

TEST_CASE(
    "a process that was stopped past its lease is told of the loss at once when it goes on, once, with a reason") {
  Database database;
  auto engine = database.engine();
  Child holder(worker({"watch", database.url(), "job", std::to_string(3000 * slowness())}));
  REQUIRE(holder.line());
  const auto end = database.admin().expires_at("job");
  REQUIRE(eventually([&] { return database.admin().expires_at("job") > end; }));  // see pause.cpp
  holder.signal(SIGSTOP);
  const auto next = engine.try_lock_for("job", 2min);
  REQUIRE(next);
  const auto continued = on_boot_clock();
  holder.signal(SIGCONT);
  std::istringstream told(holder.line().value_or(""));
  std::string word, reason;
  long long at = 0;
  int times = 0;
  told >> word >> at >> reason >> times;
  CHECK(word == "lost");
  CHECK((reason == "unconfirmed" || reason == "refused"));
  CHECK(times == 1);
  const auto after = Duration{at} - continued;
  MESSAGE("lost() came " << after.count() << " us after SIGCONT");
  CHECK(after < 2s * slowness());
  holder.tell("check");
  CHECK(holder.line() == "lost");
  holder.tell("times");
  CHECK(holder.line() == "1");
  CHECK(database.admin().owner("job") == next->owner());
  holder.tell("end");
}
