// The promise that a lease with max_hold is over in time, by the database's clock.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a lease with max_hold is renewed, and is over at most that long after its grant") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine({.polling = {.longest = 50ms}});
  const auto lease = 2500ms * slowness(), most = 5000ms * slowness();
  const auto lock = engine.try_lock("job", {.lease = lease, .max_hold = most});
  REQUIRE(lock);
  const auto granted = database.admin().acquired_at("job");
  const auto next = other.try_lock_for("job", 3min);
  REQUIRE(next);
  const auto over = database.admin().acquired_at("job");
  CHECK(over >= granted + lease);
  CHECK(over < granted + most + 2s * slowness());
  CHECK_FALSE(lock->valid());
  CHECK(eventually([&] { return lock->lost().stop_requested(); }));
  CHECK(lock->loss() == Loss::max_hold);
  CHECK(thrown_by([&] { lock->check(); }).names("max_hold"));
}

TEST_CASE("no renewal makes a lease end later than max_hold allows") {
  Database database;
  auto engine = database.engine();
  const auto lease = 2500ms * slowness(), most = 5000ms * slowness();
  auto lock = engine.try_lock("job", {.lease = lease, .max_hold = most, .renew_every = 50ms});
  REQUIRE(lock);
  const auto granted = database.admin().acquired_at("job");
  Duration last{};
  CHECK(eventually([&] {
    if (const auto end = database.admin().expires_at("job"); database.admin().held() > 0) last = end;
    return lock->loss().has_value();
  }));
  CHECK(last <= granted + most);
  CHECK(last > granted + lease);
  CHECK(lock->release() == Released::was_lost);
}

TEST_CASE("max_hold and a lease that do not fit are refused, by name") {
  Database database;
  auto engine = database.engine({.lease = 2h});
  const auto longer = thrown_by([&] { engine.try_lock("job", {.lease = 3s, .max_hold = 2s}); });
  CHECK(longer.fault == Fault::misuse);
  CHECK(longer.names("LockOptions::max_hold 2000000 us"));
  CHECK(thrown_by([&] { engine.try_lock("job", {.max_hold = -1s}); }).fault == Fault::misuse);
  auto lock = engine.try_lock("job", {.max_hold = 1h});  // the engine's default is cut short
  REQUIRE(lock);
  CHECK(engine.inspect("job")->lease == 1h);
  CHECK(thrown_by([&] { lock->extend(2h); }).fault == Fault::misuse);
  CHECK(lock->valid());
  CHECK(lock->release() == Released::freed);
}
