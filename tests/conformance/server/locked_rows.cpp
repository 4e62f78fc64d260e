// The promise that a row which some transaction keeps locked delays nobody but those who want it.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// Who waits for the locked row waits this long; who does not is far quicker, on a busy machine, too.
constexpr auto in_vain = 3min;
const auto at_once = 2s * slowness();

}  // namespace

TEST_CASE("a try on a free lock whose row is locked is busy, soon") {
  ServerDatabase database;
  auto engine = database->engine({.timeouts = {.request = in_vain}});
  engine.try_lock("job").reset();
  database->admin().block("job");
  const Stopwatch time;
  CHECK_FALSE(engine.try_lock("job"));
  CHECK(time.elapsed() < at_once);
  database->admin().unblock();
  CHECK(engine.try_lock("job").has_value());
}

TEST_CASE("a row that is locked for a moment is waited for, or where many come and go it would be nobody's turn") {
  ServerDatabase database;
  database->engine().try_lock("job").reset();
  const auto table = database->table();
  int counted = 0, drawn = 0;
  CHECK(eventually([&] {
    database->admin().block("job");
    const Stopwatch locked;
    auto drawing = std::async(std::launch::async, [&, owner = identity(counted + 1)] {
      try {
        return table->waiting().draw_ticket(
            {"job", owner, "node", "label", {}, store::Wait::Discipline::fifo, 1min, std::nullopt}, soon());
      } catch (const Failure& failure) {
        if (failure.cause() != Cause::locked) throw;
        return std::int64_t{};
      }
    });
    std::this_thread::sleep_for(10ms);
    database->admin().unblock();
    const bool for_a_moment = locked.elapsed() < 30ms;
    const bool has_one = drawing.get() > 0;
    if (!for_a_moment) return false;
    drawn += has_one ? 1 : 0;
    return ++counted == 10;
  }));
  CHECK(drawn > 5);
}

TEST_CASE("other locks are granted, renewed and released at once while one row is locked") {
  ServerDatabase database;
  auto engine = database->engine({.timeouts = {.request = in_vain}});
  engine.try_lock("job").reset();
  engine.try_lock("old").reset();
  database->admin().block("job");
  const Stopwatch time;
  for (const char* name : {"old", "new"}) {
    auto lock = engine.try_lock(name);
    REQUIRE(lock);
    lock->extend(1min);
    CHECK(lock->release() == Released::freed);
  }
  CHECK(time.elapsed() < at_once);
  database->admin().unblock();
}

TEST_CASE("of a batch of renewals the locked row is not known yet, and the others are renewed at once") {
  ServerDatabase database;
  auto engine = database->engine();
  const auto table = database->table();
  std::vector<Lock> locks;
  std::vector<store::LeaseKey> claims;
  for (const char* name : {"a", "b", "c"}) locks.push_back(engine.lock(name, {.renew = false}));
  for (const auto& lock : locks) claims.push_back({lock.name(), lock.owner(), lock.token(), 30s});
  database->admin().block("b");
  const auto end = Admin(database.server()).expires_at("c");
  using store::Renewed;
  const Stopwatch time;
  CHECK(table->renew(claims, later(BootClock::now(), in_vain)) ==
        std::vector<store::Renewal>{Renewed::yes, Renewed::not_known_yet, Renewed::yes});
  CHECK(time.elapsed() < at_once);
  CHECK(Admin(database.server()).expires_at("c") > end);
  database->admin().unblock();
  CHECK(table->renew(claims, later(BootClock::now(), in_vain)) == std::vector<store::Renewal>(3, Renewed::yes));
}

TEST_CASE("the reaper goes around a locked row and comes back for it") {
  ServerDatabase database;
  auto engine = database->engine({.reaper = {.retention = 50ms, .grace = 50ms}});
  for (const char* name : {"a", "b"}) {
    engine.try_lock(name).reset();
    database->admin().make_idle_for_days(name);
  }
  engine.reap();
  Admin other(database.server());
  database->admin().block("a");
  CHECK(eventually([&] {
    engine.reap();
    return !other.exists("b");
  }));
  CHECK(other.exists("a"));
  database->admin().unblock();
  CHECK(eventually([&] {
    engine.reap();
    return !other.exists("a");
  }));
}

TEST_CASE("who died among several is told of while the row of another one is locked, and that one is told of later") {
  ServerDatabase database;
  EventLog news;
  auto dies = database->engine({.reentrance = Reentrance::none});
  std::string owner;  // of "a"
  for (const char* name : {"b", "a"}) {
    auto lock = dies.lock(name, {.mode = Mode::shared, .lease = 1h, .renew = false});
    owner = lock.owner();
    lock.detach();
  }
  database->admin().run("UPDATE resource_lock SET expires_at = acquired_at WHERE owner IS NOT NULL");
  database->admin().run("UPDATE resource_lock_holder SET expires_at = acquired_at");
  {
    Admin blocking(database.server());
    blocking.run("BEGIN");
    blocking.run("UPDATE resource_lock_holder SET label = 'locked' WHERE name = 'a' AND owner = '" + owner + "'");
    auto engine = database->engine({.observer = news.observer()});
    CHECK(engine.reap().abandoned == 1);
    REQUIRE(news.comes(Event::Kind::abandoned));
    CHECK(news.of(Event::Kind::abandoned).front().name == "b");
    blocking.run("ROLLBACK");
    CHECK(eventually([&] { return engine.reap().abandoned == 1; }));
  }
  CHECK(news.of(Event::Kind::abandoned).size() == 2);
}

TEST_CASE(
    "a name that is held is busy at once while its row is locked, also to who has freed it again and again before") {
  ServerDatabase database;
  auto engine = database->engine();
  auto other = database->engine();
  for (int i = 0; i < 3; ++i) engine.try_lock("job").reset();
  const auto held = other.lock("job", {.lease = 1h, .renew = false});
  database->admin().block("job");
  Refusal refusal;
  const Stopwatch time;
  CHECK_FALSE(engine.try_lock("job", {}, &refusal));
  CHECK(time.elapsed() < at_once);
  CHECK(refusal.holder.state == State::held);
  CHECK(refusal.why == Refused::busy);
  database->admin().unblock();
}

TEST_CASE("who is inside by its node may enter again once its row is locked no more, whoever of its engine waits") {
  ServerDatabase database;
  EngineOptions options;
  options.reentrance = Reentrance::node;
  auto engine = database->engine(options);
  std::future<std::optional<Lock>> waiting, asked;  // end behind what they wait for
  auto outer = engine.lock("job");
  waiting = std::async(std::launch::async,
                       [&] { return engine.try_lock_for("job", in_vain, {.reentrance = Reentrance::none}); });
  const auto in_line = [&](std::size_t count) {
    return eventually([&] { return engine.stats().waiting["job"] == count; });
  };
  CHECK(in_line(1));
  database->admin().block("job");
  asked = std::async(std::launch::async, [&] { return engine.try_lock_for("job", in_vain); });
  CHECK(in_line(2));
  database->admin().unblock();
  const auto inner = asked.get();
  REQUIRE(inner);
  CHECK(inner->token() == outer.token());
  CHECK(waiting.wait_for(0s) == std::future_status::timeout);
  outer.release();
}

TEST_CASE("who found the row locked that says that its name is wanted says so once it can, however rarely it looks") {
  ServerDatabase database;
  auto holder = database->engine(), waiter = database->engine({.polling = {.first = 1h, .longest = 1h}});
  auto lock = holder.lock("job", {.lease = 1h});
  const auto marked = [&] {
    return Admin(database.server()).number("SELECT wanted_until FROM resource_lock WHERE name = 'job'") > 0;
  };
  database->admin().block("job");
  std::vector<std::future<bool>> waits;
  waits.push_back(std::async(std::launch::async, [&] { return waiter.wait_free("job", in_vain); }));
  waits.push_back(std::async(std::launch::async, [&] {
    return waiter.try_lock_for("job", in_vain, {.fairness = Fairness::fifo}).has_value();
  }));
  CHECK(eventually([&] { return waiter.stats().waiting["job"] == 2; }));
  // Most likely they have looked by then, and could not say it.
  CHECK(eventually([&] { return waiter.stats().requests_in_flight == 0; }));
  CHECK_FALSE(marked());
  database->admin().unblock();
  CHECK(eventually([&] { return marked(); }, 20s * slowness()));
  CHECK(eventually([&] { return Admin(database.server()).number("SELECT count(*) FROM resource_lock_waiter") == 1; },
                   20s * slowness()));
  lock.release();
  for (auto& wait : waits) CHECK(wait.get());
}
