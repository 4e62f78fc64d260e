// The promise that a file that somebody else writes to leaves nothing in doubt: what did not get in has
// not happened.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a request that does not get in, in time, has not happened, and says so") {
  Database database;
  auto engine = database.engine({.timeouts = {.request = 300ms * slowness()}});
  auto lock = engine.try_lock("held", {.lease = 1h});
  REQUIRE(lock);
  const auto row = database.admin().row("held");
  database.admin().block("held");
  const auto extended = thrown_by([&] { lock->extend(2h); });
  CHECK(extended.fault == Fault::timeout);
  CHECK(lock->remaining() < 1h);
  CHECK(lock->valid());
  std::optional<Lock> other;
  const auto acquired = thrown_by([&] { other = engine.try_lock("job"); });
  CHECK_FALSE(other);
  if (acquired.fault) CHECK(acquired.fault == Fault::timeout);
  database.admin().unblock();
  CHECK(database.admin().row("held") == row);
  CHECK_FALSE(database.admin().exists("job"));
  CHECK(lock->release() == Released::freed);
}

TEST_CASE("a release that does not get in, in time, is done by the engine later") {
  Database database;
  auto engine = database.engine({.timeouts = {.request = 300ms * slowness()}});
  auto lock = engine.try_lock("job", {.lease = 1h});
  REQUIRE(lock);
  database.admin().block("job");
  CHECK(lock->release() == Released::unconfirmed);
  database.admin().unblock();
  CHECK(eventually([&] { return database.admin().held() == 0; }));
}
