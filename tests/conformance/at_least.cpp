// The promise that a lock taken with `at_least` stays closed that long, whatever its holder does.
#include "support/child.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"

#include <doctest/doctest.h>

#include <csignal>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a lock stays closed for its at-least time although it was released, and then opens") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("tick", {.at_least = 1h});
  REQUIRE(lock);
  CHECK(lock->release() == Released::freed);
  CHECK_FALSE(engine.try_lock("tick"));
  const auto row = engine.inspect("tick");
  REQUIRE(row);
  CHECK(row->state == State::closed);
  CHECK(row->left > 59min);
  CHECK(row->left <= 1h);
  database.admin().age("tick", 59min);
  CHECK_FALSE(engine.try_lock("tick"));
  database.admin().age("tick", 1min);
  CHECK(engine.try_lock("tick").has_value());
}

TEST_CASE("a lock stays closed for its at-least time although its holder crashed") {
  Database database;
  auto engine = database.engine();
  Child holder(worker({"hold", database.url(), "tick", "30000", "3600000"}));
  REQUIRE(holder.line());
  holder.signal(SIGKILL);
  CHECK(holder.wait() == killed_by(SIGKILL));
  database.admin().expire("tick");
  CHECK_FALSE(engine.try_lock("tick"));
  database.admin().age("tick", 1h);
  CHECK(engine.try_lock("tick").has_value());
}

TEST_CASE("renewing and extending do not move the time when a lock reopens") {
  Database database;
  auto engine = database.engine();
  auto options = renewed_often();
  options.at_least = 1h;
  auto lock = engine.try_lock("tick", options);
  REQUIRE(lock);
  const auto reopens = database.admin().reopens_at("tick");
  CHECK(reopens == database.admin().acquired_at("tick") + 1h);
  const auto first_end = database.admin().expires_at("tick");
  CHECK(eventually([&] { return database.admin().expires_at("tick") > first_end; }));
  lock->extend(20min);
  CHECK(database.admin().reopens_at("tick") == reopens);
  CHECK(lock->release() == Released::freed);
  CHECK(database.admin().reopens_at("tick") == reopens);
}

TEST_CASE(
    "an extension keeps a lock closed for a time from then on, although it is released, and never makes that shorter") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.lock("tick", {.renew = false});
  CHECK(database.admin().reopens_at("tick") == Duration{});
  lock.extend(30s, 1h);
  const auto reopens = database.admin().reopens_at("tick");
  CHECK(reopens > database.admin().acquired_at("tick") + 59min);
  lock.extend(30s, 1min);
  lock.extend(2h);
  CHECK(database.admin().reopens_at("tick") == reopens);
  lock.extend(30s, 2h);
  const auto later = database.admin().reopens_at("tick");
  CHECK(later >= reopens + 1h);
  CHECK(lock.release() == Released::freed);
  CHECK(database.admin().reopens_at("tick") == later);
  CHECK_FALSE(engine.try_lock("tick"));
  database.admin().age("tick", 3h);
  CHECK(engine.try_lock("tick").has_value());
  CHECK(database.admin().reopens_at("tick") == Duration{});
}

TEST_CASE("an extension adds to the at-least time of the grant, and does not take the place of one that is longer") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.lock("tick", {.at_least = 1h, .renew = false});
  const auto reopens = database.admin().reopens_at("tick");
  lock.extend(30s, 30min);
  CHECK(database.admin().reopens_at("tick") == reopens);
  lock.extend(30s, 2h);
  CHECK(database.admin().reopens_at("tick") > reopens + 59min);
}

TEST_CASE("an extension by one entry of a node keeps the lock closed for a time, whoever of them leaves last") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::node, .node = "replica-1"});
  auto first = engine.lock("tick"), second = engine.lock("tick");
  first.extend(1min, 1h);
  const auto reopens = database.admin().reopens_at("tick");
  CHECK(reopens > database.admin().acquired_at("tick") + 59min);
  second.extend(1min, 1min);
  CHECK(database.admin().reopens_at("tick") == reopens);
  CHECK(first.release() == Released::still_held);
  CHECK(second.release() == Released::freed);
  CHECK_FALSE(engine.try_lock("tick"));
  CHECK(engine.inspect("tick")->state == State::closed);
}

TEST_CASE("who has lost a lock keeps it closed for nobody") {
  Database database;
  auto engine = database.engine();
  auto lost = engine.lock("tick", {.renew = false});
  CHECK(engine.force_release("tick", lost.token()));
  CHECK(thrown_by([&] { lost.extend(1min, 1h); }).fault == Fault::lost);
  CHECK(database.admin().reopens_at("tick") == Duration{});
  CHECK(engine.try_lock("tick").has_value());
}

TEST_CASE("the next holder's at-least time replaces the last one's, and without one a release opens at once") {
  Database database;
  auto engine = database.engine();
  engine.try_lock("tick", {.at_least = 1h}).reset();
  database.admin().age("tick", 2h);
  engine.try_lock("tick").reset();
  CHECK(database.admin().reopens_at("tick") == Duration{});
  CHECK(engine.try_lock("tick").has_value());
}

TEST_CASE("a waiter gets the lock when its at-least time is over, not before") {
  Database database;
  auto engine = database.engine({.polling = {.longest = 50ms}});
  const Stopwatch since_before_the_grant;
  engine.try_lock("tick", {.at_least = 400ms}).reset();
  CHECK(engine.try_lock_for("tick", 30s).has_value());
  CHECK(since_before_the_grant.elapsed() >= 399ms);
}

TEST_CASE("an at-least time that was written for nothing ends, but for who holds the lock no more") {
  Database database;
  const auto table = database.table();
  auto engine = database.engine();
  auto lock = engine.try_lock("tick", {.lease = 1h, .at_least = 1h, .renew = false});
  REQUIRE(lock);
  const store::LeaseKey key{"tick", lock->owner(), lock->token()};
  const auto reopened = [&] { return patiently([&] { return table->extend(key, 1h, store::reopens, soon()); }); };
  CHECK(reopened() == store::Renewed::yes);
  CHECK(database.admin().reopens_at("tick") == Duration{});
  lock->extend(1h, 1h);
  CHECK(lock->release() == Released::freed);
  CHECK(reopened() == store::Renewed::lost);
  CHECK_FALSE(engine.try_lock("tick"));
}
