// The promise that a name whose lock was lost stays closed for as long as its holder asked for, and that
// one which was let go of is open at once.
#include "support/caller.hpp"
#include "support/child.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <csignal>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

LockOptions delayed(LockOptions options = {}) {
  options.lease = 30s;
  options.delay_after_loss = 1h;
  options.renew = false;
  return options;
}

// As if that time had passed, for this process alone.
class Later {
 public:
  explicit Later(Duration by) { BootClock::ahead += std::chrono::nanoseconds{by}.count(); }
  ~Later() { BootClock::ahead = 0; }
  Later(const Later&) = delete;
  Later& operator=(const Later&) = delete;
};

}  // namespace

TEST_CASE("a name whose holder crashed stays closed for the delay after the end of its lease, and then opens") {
  Database database;
  auto engine = database.engine();
  Child holder(worker({"hold", database.url(), "job", "30000", "0", "3600000"}));
  REQUIRE(holder.line());
  holder.signal(SIGKILL);
  CHECK(holder.wait() == killed_by(SIGKILL));
  database.admin().age("job", 31s);
  CHECK_FALSE(engine.try_lock("job"));
  const auto row = engine.inspect("job");
  REQUIRE(row);
  CHECK(row->state == State::held);  // others see it end when the name opens
  CHECK(row->left > 58min);
  CHECK(engine.reap().abandoned == 0);
  database.admin().age("job", 58min);
  CHECK_FALSE(engine.try_lock("job"));
  database.admin().age("job", 2min);
  CHECK(engine.try_lock("job").has_value());
}

TEST_CASE("a name that is let go of opens at once, whatever the delay") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  auto lock = engine.lock("job", delayed());
  CHECK(lock.release() == Released::freed);
  CHECK(other.try_lock("job").has_value());
}

TEST_CASE(
    "nobody trusts in the delay: a lock is lost when its lease is over, and who lets go of it then opens the name") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  auto lock = engine.lock("job", delayed());
  CHECK(lock.remaining() <= 30s);
  CHECK(lock.remaining() > 20s);
  const Later later(30s);
  CHECK_FALSE(lock.valid());
  CHECK(lock.loss() == Loss::unconfirmed);
  CHECK_FALSE(other.try_lock("job"));
  CHECK(lock.release() == Released::was_lost);
  CHECK(other.try_lock("job").has_value());
}

TEST_CASE("renewals and extensions keep the delay behind the lease") {
  Database database;
  auto engine = database.engine();
  auto often = renewed_often();
  often.delay_after_loss = 1h;
  auto lock = engine.lock("job", often);
  const auto first = database.admin().expires_at("job");
  CHECK(first >= database.admin().acquired_at("job") + *often.lease + 1h);
  CHECK(eventually([&] { return database.admin().expires_at("job") > first; }));
  CHECK(lock.remaining() <= *often.lease);
  lock.extend(20min);
  CHECK(database.admin().expires_at("job") > database.admin().acquired_at("job") + 1h + 19min);
  CHECK(lock.remaining() > 19min);
  CHECK(lock.remaining() <= 20min);
  lock.ensure(30min);
  CHECK(lock.remaining() >= 30min - 1min);
  CHECK(lock.remaining() < 40min);
  CHECK(database.admin().expires_at("job") > database.admin().acquired_at("job") + 1h + 29min);
}

TEST_CASE("max_hold bounds the time in which the lock is held, and the delay comes after it") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.lock("job", {.lease = 10min, .max_hold = 15min, .delay_after_loss = 1h, .renew = false});
  CHECK(database.admin().expires_at("job") == database.admin().acquired_at("job") + 1h + 10min);
  const auto refused = thrown_by([&] { lock.extend(16min); });
  CHECK(refused.fault == Fault::misuse);
  CHECK(refused.names("max_hold"));
  lock.extend(14min);
  CHECK(lock.remaining() > 13min);
  CHECK(lock.remaining() <= 14min);
  const Later later(14min);
  CHECK_FALSE(lock.valid());
}

TEST_CASE("a reader, or who has a permit, that crashed keeps its place for the delay") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  const auto reader = engine.lock("book", delayed({.mode = Mode::shared})).detach();
  const auto permit = engine.lock("slots", delayed({.mode = Mode::permits, .limit = 1})).detach();
  database.admin().age("book", 31s);
  database.admin().age("slots", 31s);
  CHECK_FALSE(other.try_lock("book"));
  CHECK(other.try_lock("book", {.mode = Mode::shared}).has_value());
  CHECK_FALSE(other.try_lock("slots", {.mode = Mode::permits, .limit = 1}));
  database.admin().age("book", 1h);
  database.admin().age("slots", 1h);
  CHECK(other.try_lock("book").has_value());
  CHECK(other.try_lock("slots", {.mode = Mode::permits, .limit = 1}).has_value());
}

TEST_CASE("several names, and one that is locked in a transaction, have the delay, too") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  {
    auto both = engine.try_lock_all({"a", "b"}, delayed());
    REQUIRE(both);
    CHECK(both->remaining() <= 30s);
    CHECK(database.admin().expires_at("a") == database.admin().acquired_at("a") + 1h + 30s);
    CHECK(database.admin().expires_at("b") == database.admin().acquired_at("b") + 1h + 30s);
  }
  CHECK(other.try_lock_all({"a", "b"}).has_value());
  Caller caller(database.test_database());
  caller.begin(database.test_database().beginnings().front());
  CHECK(engine.try_lock_in(caller.native(), "c", 1min, delayed()).has_value());
  caller.run("COMMIT");
  database.admin().age("c", 31s);
  CHECK_FALSE(other.try_lock("c"));
  database.admin().age("c", 1h);
  CHECK(other.try_lock("c").has_value());
}

TEST_CASE("force opens a name in its delay, and an heir of the grant says its own") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  const auto lost = engine.lock("job", delayed()).detach();
  database.admin().age("job", 31s);
  CHECK(other.force_release("job", lost.token));
  CHECK(other.try_lock("job").has_value());
  auto heir = other.adopt("next", engine.lock("next", delayed()).detach(), delayed());
  REQUIRE(heir);
  CHECK(heir->remaining() <= 30s);
  CHECK(heir->release() == Released::freed);
}

TEST_CASE("a delay that cannot be kept is refused, by name") {
  Database database;
  auto engine = database.engine();
  for (const Duration wrong : {Duration{-1}, until_released + 1us}) {
    const auto refused = thrown_by([&] { static_cast<void>(engine.try_lock("job", {.delay_after_loss = wrong})); });
    CHECK(refused.fault == Fault::misuse);
    CHECK(refused.names("LockOptions::delay_after_loss"));
  }
  const auto endless =
      thrown_by([&] { static_cast<void>(engine.try_lock("job", {.lease = until_released, .delay_after_loss = 1s})); });
  CHECK(endless.fault == Fault::misuse);
  CHECK(endless.names("LockOptions::delay_after_loss"));
  auto lock = engine.lock("job", delayed());
  CHECK(thrown_by([&] { lock.extend(until_released); }).fault == Fault::misuse);
  CHECK(lock.valid());
}
