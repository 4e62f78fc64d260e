// The promise that a holder learns, with its renewals, that somebody waits for its lock; and nobody else does.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// One that waits in line until it is told to stop, and has nothing then.
std::jthread waiter(Engine& engine, const LockOptions& options = {}) {
  return std::jthread([&engine, options](const std::stop_token& stop) {
    const auto lock = engine.lock(stop, "job", options);
    CHECK_FALSE(lock);
  });
}

// Several renewals later, which come every 20 ms.
void some_rounds_later(Database& database, std::string_view name = "job") {
  for (int round = 0; round < 5; ++round) {
    const auto end = database.admin().expires_at(name);
    REQUIRE(eventually([&] { return database.admin().expires_at(name) > end; }));
  }
}

}  // namespace

TEST_CASE("a holder learns with its renewals that somebody waits elsewhere, and that nobody does any more") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  const auto lock = engine.try_lock("job", renewed_often());
  REQUIRE(lock);
  const auto asked = lock->asked();
  some_rounds_later(database);
  CHECK_FALSE(lock->wanted());
  CHECK_FALSE(asked.stop_requested());
  {
    const auto waiting = waiter(other);
    REQUIRE(eventually([&] { return !engine.waiters("job").empty(); }));
    CHECK(eventually([&] { return lock->wanted().has_value(); }));
    CHECK(eventually([&] { return asked.stop_requested(); }));
    CHECK(eventually([&] { return lock->wanted() && lock->wanted()->waited > 50ms; }));
  }
  CHECK(eventually([&] { return !lock->wanted(); }));
  CHECK(asked.stop_requested());  // for good
  CHECK(lock->asked().stop_requested());
  CHECK(lock->valid());
}

TEST_CASE("the next renewal tells of who can be seen to wait") {
  Database database;
  auto engine = database.engine();
  const auto table = database.table();
  const auto every = 300ms * slowness();
  const auto lock = engine.try_lock("job", {.lease = 1h, .renew_every = every});
  REQUIRE(lock);
  Hand hand(*table, 1);
  hand.draw_ticket();
  const auto seen = BootClock::now();
  CHECK(eventually([&] { return lock->wanted().has_value(); }));
  CHECK(BootClock::now() - seen < every + 3s * slowness());
  hand.remove();
  CHECK(eventually([&] { return !lock->wanted(); }));
}

TEST_CASE("who has waited for what it holds is not asked by its own wait") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  // A name for each: the row of a wait that is over goes some time later, and would ask the next holder.
  for (const auto& [name, fairness] : {std::pair{"barging", Fairness::barging}, std::pair{"fifo", Fairness::fifo}}) {
    auto first = engine.try_lock(name);
    REQUIRE(first);
    auto options = renewed_often();
    options.fairness = fairness;
    std::optional<Lock> second;
    std::jthread waiting([&] { second = other.lock(name, options); });
    REQUIRE(eventually([&] { return !engine.waiters(name).empty(); }));
    first->release();
    waiting.join();
    REQUIRE(second);
    const auto asked = second->asked();
    some_rounds_later(database, name);
    CHECK_FALSE(second->wanted());
    CHECK_FALSE(asked.stop_requested());
    second->release();
  }
}

TEST_CASE("a row of the holder's own asks it for nothing") {
  Database database;
  const auto table = database.table();
  Hand holder(*table, 1), other(*table, 2);
  holder.add();
  REQUIRE(holder.acquire());
  const store::LeaseKey key{"job", holder.owner(), holder.token(), 1h};
  const auto renewed = [&] { return table->renew({&key, 1}, soon()).front(); };
  CHECK(renewed() == store::Renewal(store::Renewed::yes));
  other.add();
  CHECK(renewed() == store::Renewed::yes);
  CHECK(renewed().wanted);
  other.remove();
  CHECK(renewed() == store::Renewal(store::Renewed::yes));
  CHECK(holder.release());
}

TEST_CASE("a ticket that is over asks for nothing, and neither does one that was served") {
  Database database;
  auto engine = database.engine();
  const auto table = database.table();
  Hand dead(*table, 1), served(*table, 2);
  served.draw_ticket();
  const auto ttl = 2s * slowness();
  {
    auto lock = engine.try_lock("job", renewed_often());
    CHECK_FALSE(lock);  // somebody has a ticket
  }
  REQUIRE(served.acquire());
  dead.draw_ticket(ttl);
  served.release();
  std::optional<Lock> lock;
  REQUIRE(eventually([&] { return (lock = engine.try_lock("job", renewed_often())).has_value(); }));
  some_rounds_later(database);
  CHECK_FALSE(lock->wanted());
  Hand dies(*table, 3);
  dies.draw_ticket(ttl);
  CHECK(eventually([&] { return lock->asked().stop_requested(); }));
  CHECK(eventually([&] { return !lock->wanted(); }));
}

TEST_CASE("a holder learns at once of who waits in the same process, without a statement") {
  Database database;
  auto engine = database.engine();
  const auto lock = engine.try_lock("job", {.lease = 1h, .renew = false});
  REQUIRE(lock);
  std::atomic<int> asked{0};
  std::thread::id by;
  const std::stop_callback heard(lock->asked(), [&] {
    by = std::this_thread::get_id();
    ++asked;
  });
  CHECK_FALSE(lock->wanted());
  {
    auto waiting = waiter(engine);
    CHECK(eventually([&] { return lock->wanted().has_value(); }));
    CHECK(eventually([&] { return asked == 1; }));
    CHECK(by != waiting.get_id());
    CHECK(by != std::this_thread::get_id());
    waiting.request_stop();
  }
  CHECK_FALSE(lock->wanted());
  {
    const auto again = waiter(engine);
    CHECK(eventually([&] { return lock->wanted().has_value(); }));
  }
  CHECK(asked == 1);
}

TEST_CASE("who asks only when somebody waits already in the same process is told at once") {
  Database database;
  auto engine = database.engine();
  const auto lock = engine.try_lock("job", {.lease = 1h, .renew = false});
  REQUIRE(lock);
  const auto waiting = waiter(engine);
  REQUIRE(eventually([&] { return lock->wanted().has_value(); }));
  const auto asked = lock->asked();
  CHECK(eventually([&] { return asked.stop_requested(); }));
}

TEST_CASE("a lease that is not renewed hears of others when it is extended") {
  Database database;
  auto engine = database.engine();
  const auto table = database.table();
  auto lock = engine.try_lock("job", {.lease = 1h, .renew = false});
  REQUIRE(lock);
  Hand hand(*table, 1);
  hand.draw_ticket();
  CHECK_FALSE(lock->wanted());
  lock->extend(1h);
  CHECK(lock->wanted());
  CHECK(lock->asked().stop_requested());
  hand.remove();
  CHECK(lock->wanted());
  lock->extend(1h);
  CHECK_FALSE(lock->wanted());
}

TEST_CASE("of the locks of one engine only the one that is wanted is told") {
  Database database;
  auto engine = database.engine();
  const auto table = database.table();
  const auto before = engine.try_lock("a", renewed_often());
  const auto wanted = engine.try_lock("b", renewed_often());
  const auto after = engine.try_lock("c", renewed_often());
  REQUIRE((before && wanted && after));
  Hand hand(*table, 1, "b");
  hand.draw_ticket();
  CHECK(eventually([&] { return wanted->wanted().has_value(); }));
  for (const auto* name : {"a", "b", "c"}) some_rounds_later(database, name);
  for (const auto* each : {&before, &after}) {
    CHECK_FALSE((*each)->wanted());
    CHECK_FALSE((*each)->asked().stop_requested());
  }
  CHECK(wanted->wanted());
}

TEST_CASE("asked() is set once, however many come and go, for all entries of a thread") {
  Database database;
  auto engine = database.engine();
  const auto table = database.table();
  const auto lock = engine.try_lock("job", renewed_often());
  const auto again = engine.try_lock("job", renewed_often());
  REQUIRE((lock && again));
  std::atomic<int> asked{0};
  const std::stop_callback heard(lock->asked(), [&] { ++asked; });
  for (int i = 0; i < 3; ++i) {
    Hand hand(*table, i);
    hand.draw_ticket();
    CHECK(eventually([&] { return lock->wanted().has_value(); }));
    CHECK(eventually([&] { return asked > 0; }));
    CHECK(again->wanted());
    CHECK(again->asked().stop_requested());
    hand.remove();
    CHECK(eventually([&] { return !lock->wanted(); }));
  }
  CHECK(asked == 1);
}

TEST_CASE("an entry of a node is told of those who wait") {
  Database database;
  auto engine = database.engine();
  const auto table = database.table();
  auto options = renewed_often();
  options.reentrance = Reentrance::node;
  auto lock = engine.try_lock("job", options);
  REQUIRE(lock);
  some_rounds_later(database);
  CHECK_FALSE(lock->wanted());
  Hand hand(*table, 1);
  hand.draw_ticket();
  CHECK(eventually([&] { return lock->wanted().has_value(); }));
  CHECK(eventually([&] { return lock->asked().stop_requested(); }));  // right after that
  hand.remove();
  CHECK(eventually([&] { return !lock->wanted(); }));
}

TEST_CASE("a Lock that has ended is not wanted; who adopts its lease is asked anew") {
  Database database;
  auto engine = database.engine();
  const auto table = database.table();
  auto lock = engine.try_lock("job", renewed_often());
  REQUIRE(lock);
  const auto asked = lock->asked();
  auto moved = std::move(*lock);
  CHECK(lock->asked().stop_requested());
  CHECK_FALSE(lock->wanted());
  CHECK_FALSE(moved.asked().stop_requested());
  const auto grant = moved.detach();
  CHECK_FALSE(moved.wanted());
  Hand hand(*table, 1);
  hand.draw_ticket();
  auto adopted = engine.adopt("job", grant, renewed_often());
  REQUIRE(adopted);
  CHECK(eventually([&] { return adopted->asked().stop_requested(); }));
  CHECK(adopted->wanted());
  CHECK_FALSE(asked.stop_requested());
  CHECK_FALSE(moved.wanted());
  hand.remove();
  adopted->release();
  CHECK_FALSE(adopted->wanted());
}

TEST_CASE("each reader, and each who has a permit, is told of those who wait, and of nobody else's wait") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  for (const auto mode : {Mode::shared, Mode::permits}) {
    INFO(to_string(mode));
    auto options = renewed_often();
    options.reentrance = Reentrance::none;
    options.mode = mode;
    if (mode == Mode::permits) options.limit = 2;
    auto one = engine.try_lock("job", options), two = other.try_lock("job", options);
    auto elsewhere = engine.try_lock("quiet", options);
    REQUIRE((one && two && elsewhere));
    for (const auto* name : {"job", "quiet"}) some_rounds_later(database, name);
    for (const auto* lock : {&*one, &*two, &*elsewhere}) {
      CHECK_FALSE(lock->wanted());
      CHECK_FALSE(lock->asked().stop_requested());
    }
    {
      // In line behind both: for a permit as well, of which there is none left.
      const auto waiting = waiter(other, mode == Mode::permits ? options : LockOptions{});
      REQUIRE(eventually([&] { return !engine.waiters("job").empty(); }));
      for (const auto* lock : {&*one, &*two}) {
        CHECK(eventually([&] { return lock->wanted().has_value(); }));
        CHECK(eventually([&] { return lock->asked().stop_requested(); }));
        CHECK(lock->valid());
      }
      CHECK_FALSE(elsewhere->wanted());
      CHECK_FALSE(elsewhere->asked().stop_requested());
    }
    for (const auto* lock : {&*one, &*two}) CHECK(eventually([&] { return !lock->wanted(); }));
    one->release();
    CHECK_FALSE(one->wanted());
    two->release();
  }
}

TEST_CASE("a reader, or who has a permit, lets go when it is asked to, and who waited comes in") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  for (const auto mode : {Mode::shared, Mode::permits}) {
    INFO(to_string(mode));
    auto options = renewed_often();
    options.reentrance = Reentrance::none;
    options.mode = mode;
    if (mode == Mode::permits) options.limit = 1;
    auto lock = engine.try_lock("job", options);
    REQUIRE(lock);
    std::optional<Lock> next;
    std::jthread waiting([&] { next = other.lock("job", mode == Mode::permits ? options : LockOptions{}); });
    const auto asked = lock->asked();
    CHECK(eventually([&] { return asked.stop_requested(); }));
    CHECK(lock->release() == Released::freed);
    waiting.join();
    REQUIRE(next);
    CHECK(next->token() > lock->token());
    CHECK_FALSE(next->wanted());
    next->release();
  }
}

TEST_CASE("a lease that several share and that is not renewed hears of others when it is extended") {
  Database database;
  auto engine = database.engine();
  const auto table = database.table();
  for (const auto mode : {Mode::shared, Mode::permits}) {
    INFO(to_string(mode));
    LockOptions options{.mode = mode, .lease = 1h, .renew = false};
    if (mode == Mode::permits) options.limit = 1;
    auto lock = engine.try_lock("job", options);
    REQUIRE(lock);
    Hand hand(*table, 1);
    hand.draw_ticket();
    CHECK_FALSE(lock->wanted());
    lock->extend(1h);
    CHECK(lock->wanted());
    CHECK(lock->asked().stop_requested());
    hand.remove();
    lock->extend(1h);
    CHECK_FALSE(lock->wanted());
    CHECK(lock->release() == Released::freed);
  }
}
