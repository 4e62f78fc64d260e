// The promise that a lease without end is ended by a release alone, and that its holder hears of it.
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a lease until it is released is held through a year of silence, and is no prey of the reaper") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  const auto grant = engine.lock("job", {.lease = until_released}).detach();
  database.admin().age("job", 24h * 365);
  CHECK_FALSE(other.try_lock("job"));
  const auto row = other.inspect("job");
  REQUIRE(row);
  CHECK(row->state == State::held);
  CHECK(row->lease == until_released);
  CHECK(row->held >= 24h * 365);
  CHECK(other.reap().abandoned == 0);
  auto adopted = engine.adopt("job", grant);
  REQUIRE(adopted);
  CHECK(adopted->release() == Released::freed);
  CHECK(other.try_lock("job"));
}

TEST_CASE("who holds a lease until it is released hears that it was released by force") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  auto lock = engine.lock("job", {.lease = until_released});
  CHECK(lock.remaining() > 24h * 3650);
  CHECK(other.force_release("job", lock.token()));
  BootClock::ahead += std::chrono::nanoseconds{10s}.count();
  const auto beside = engine.lock("beside");  // whoever keeps the leases looks at the clock anew
  CHECK(eventually([&] { return lock.lost().stop_requested(); }));
  BootClock::ahead = 0;
  CHECK((lock.loss() == Loss::forced || lock.loss() == Loss::refused));  // it knows why for a second
  CHECK_FALSE(lock.valid());
}

TEST_CASE("nothing lasts longer than until it is released") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.lock("job");
  lock.extend(until_released);
  CHECK(engine.inspect("job")->lease == until_released);
  CHECK(thrown_by([&] { lock.extend(until_released + 1us); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { static_cast<void>(engine.try_lock("other", {.lease = std::chrono::hours::max()})); }).fault ==
        Fault::misuse);
}
