// The promise that the database's clock alone decides: it may be a day away from the clients', and may
// be stepped while locks are held. Where the database is a file, the host's clock is the clock, for all alike.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// One server for the cases of this file: starting one takes seconds.
PrivateServer& clocked() {
  static const auto server = opener().private_server();
  return *server;
}

Duration here() { return std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch()); }

// A step takes effect at once or almost: waits until a grant shows it.
void step(Database& database, Engine& engine, std::chrono::seconds offset) {
  clocked().step_clock(offset);
  REQUIRE(eventually([&] {
    engine.try_lock("probe").reset();
    const auto off = database.admin().acquired_at("probe") - here() - offset;
    return off < 30s && off > -30s;
  }));
}

}  // namespace

TEST_CASE("on a server whose clock is a day away leases are as long as they should be, and renewed") {
  for (const std::chrono::seconds offset : {24h, -24h}) {
    Database database(clocked().test_database());
    auto engine = database.engine();
    auto other = database.engine();
    step(database, engine, offset);
    const auto lease = 2500ms * slowness();
    const auto lock = engine.try_lock("job", {.lease = lease});
    REQUIRE(lock);
    const auto begun = database.admin().acquired_at("job");
    const auto off = begun - here() - offset;
    CHECK(off < 30s);
    CHECK(off > -30s);
    CHECK(eventually([&] { return database.admin().expires_at("job") > begun + 2 * lease; }));
    CHECK(lock->valid());
    CHECK_FALSE(other.try_lock("job"));
    Refusal refusal;
    CHECK_FALSE(other.try_lock("job", {}, &refusal));
    CHECK(refusal.holder.held < 60s);
    CHECK(refusal.holder.left <= lease);
    const auto brief = 2s * slowness();
    auto gone = engine.try_lock("gone", {.lease = brief, .renew = false});
    const Stopwatch time;
    gone->detach();
    CHECK_FALSE(other.try_lock("gone", {}, &refusal));
    CHECK(other.try_lock_for("gone", 2min).has_value());
    CHECK(time.elapsed() < brief + 3s * slowness());
  }
}

TEST_CASE("tokens grow although the server's clock is stepped back, through release, takeover and reaping") {
  Database database(clocked().test_database());
  auto engine = database.engine({.reaper = {.retention = 50ms, .grace = 50ms}});
  Token last{};
  for (const std::chrono::seconds offset : {24h, 0h, -24h, 24h, -24h}) {
    step(database, engine, offset);
    for (const char* name : {"job", "reaped"}) {
      auto lock = engine.try_lock(name, {.renew = false});
      REQUIRE(lock);
      if (name == std::string_view("job")) {
        CHECK(lock->token() > last);
        last = lock->token();
      }
      lock->detach();
      database.admin().expire(name);
    }
    const auto highest = database.admin().token("reaped");
    database.admin().make_idle_for_days("reaped");
    CHECK(eventually([&] {
      engine.reap();
      return !database.admin().exists("reaped");
    }));
    engine.reap();
    CHECK(engine.try_lock("reaped")->token() > highest);
    free_by_force(engine, "job");
    last = database.admin().token("job");
  }
}

TEST_CASE("a clock stepped back does not close released locks, and does not end held ones") {
  Database database(clocked().test_database());
  auto engine = database.engine();
  step(database, engine, 24h);
  engine.try_lock("released").reset();
  auto held = engine.try_lock("held", renewed_often());
  REQUIRE(held);
  step(database, engine, -24h);
  CHECK(engine.try_lock("released").has_value());
  CHECK_FALSE(engine.try_lock("held", {.reentrance = Reentrance::none}));
  CHECK(held->valid());
  CHECK(held->release() == Released::freed);
  CHECK(engine.try_lock("held").has_value());
}

TEST_CASE("a clock stepped forward ends leases early, and their holders learn of it") {
  Database database(clocked().test_database());
  auto engine = database.engine();
  auto other = database.engine();
  step(database, engine, 0s);
  auto lock = engine.try_lock("job", {.lease = 3s * slowness()});
  REQUIRE(lock);
  std::optional<Lock> next;
  std::chrono::seconds ahead = 0h;
  CHECK(eventually([&] {  // a renewal by the new clock may come first
    step(database, engine, ahead += 1h);
    next = other.try_lock("job");
    return next.has_value();
  }));
  REQUIRE(next);
  CHECK(next->token() > lock->token());
  CHECK(eventually([&] { return lock->lost().stop_requested(); }));
  CHECK(lock->release() == Released::was_lost);
}
