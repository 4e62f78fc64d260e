// The promise that never more permits of a name are held than there are, and that one that is over
// comes free.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

LockOptions permits(std::int64_t limit, std::int64_t many = 1) {
  LockOptions options;
  options.mode = Mode::permits;
  options.permits = many;
  options.limit = limit;
  return options;
}

void expire_one(Database& database, const Lock& lock) {
  database.admin().run("UPDATE resource_lock_holder SET expires_at = acquired_at WHERE owner = '" + lock.owner() + "'");
}

}  // namespace

TEST_CASE("as many have a permit as there are, by weight, each under a token of its own") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  auto one = engine.try_lock("gpu", permits(4)), two = other.try_lock("gpu", permits(4, 2));
  REQUIRE(one);
  REQUIRE(two);
  CHECK(two->token() > one->token());
  CHECK_FALSE(engine.try_lock("gpu", permits(4, 2)));
  const auto last = engine.try_lock("gpu", permits(4));
  CHECK(last);
  CHECK_FALSE(other.try_lock("gpu", permits(4)));
  CHECK_FALSE(other.try_lock("gpu"));
  CHECK_FALSE(other.try_lock("gpu", {.mode = Mode::shared}));
  CHECK(engine.inspect("gpu")->mode == Mode::permits);
  CHECK(engine.inspect("gpu")->entries == 3);
  CHECK(two->release() == Released::freed);
  CHECK(other.try_lock("gpu", permits(4, 2)));
}

TEST_CASE("the same thread takes as many permits as it asks for") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::thread});
  const auto one = engine.try_lock("gpu", permits(2)), two = engine.try_lock("gpu", permits(2));
  REQUIRE(one);
  REQUIRE(two);
  CHECK(one->owner() != two->owner());
  CHECK_FALSE(engine.try_lock("gpu", permits(2)));
}

TEST_CASE("who waits for a permit is woken when one comes free") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  auto one = engine.lock("gpu", permits(2));
  const auto two = engine.lock("gpu", permits(2));
  std::atomic<bool> granted{false};
  std::jthread waiter([&] {
    const auto lock = other.lock("gpu", permits(2));
    granted = true;
  });
  CHECK_FALSE(eventually([&] { return granted.load(); }, 50ms));
  one.release();
  CHECK(eventually([&] { return granted.load(); }));
}

TEST_CASE("a permit that is over comes free, and no other with it") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  auto options = permits(2);
  options.lease = 1h;
  auto dead = engine.lock("gpu", options);
  auto alive = engine.lock("gpu", options);
  expire_one(database, dead);
  auto next = other.try_lock("gpu", options);
  REQUIRE(next);
  CHECK_FALSE(other.try_lock("gpu", options));
  // Who was counted out is not renewed, whatever it believed.
  CHECK(thrown_by([&] { dead.extend(1h); }).fault == Fault::lost);
  CHECK(dead.lost().stop_requested());
  alive.extend(2h);
  CHECK(alive.valid());
  CHECK(database.admin().number("SELECT sum(permits) FROM resource_lock_holder") == 2);
}

TEST_CASE("a permit that is over and was not counted out holds on, and counts") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  auto options = permits(2);
  options.lease = 1h;
  auto late = engine.lock("gpu", options);
  const auto alive = engine.lock("gpu", options);
  expire_one(database, late);
  late.extend(1h);
  CHECK(late.valid());
  CHECK_FALSE(other.try_lock("gpu", options));
}

TEST_CASE("a smaller limit takes nothing away, and grants nothing until fewer are held") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  std::vector<Lock> held;
  for (int i = 0; i < 3; ++i) held.push_back(engine.lock("gpu", permits(3)));
  CHECK_FALSE(other.try_lock("gpu", permits(2)));
  CHECK(std::all_of(held.begin(), held.end(), [](const Lock& lock) { return lock.valid(); }));
  held.pop_back();
  CHECK_FALSE(other.try_lock("gpu", permits(2)));
  held.pop_back();
  CHECK(other.try_lock("gpu", permits(2)));
}

TEST_CASE("with an at-least time no more begin in it than there are permits, however fast they are") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  auto options = permits(2);
  options.at_least = 1h;
  for (int i = 0; i < 2; ++i) {
    auto lock = engine.try_lock("api", options);
    REQUIRE(lock);
    CHECK(lock->release() == Released::freed);
  }
  CHECK_FALSE(other.try_lock("api", options));
  database.admin().run("UPDATE resource_lock_holder SET reopens_at = acquired_at, expires_at = acquired_at");
  CHECK(other.try_lock("api", permits(2)));
  free_by_force(engine, "api");
}

TEST_CASE("who waits since enough have begun comes in when the first of them makes room, and no sooner") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  auto options = permits(2);
  options.at_least = 1s;
  const auto begin = [&] {
    auto lock = engine.lock("api", options);
    const auto owner = lock.owner();
    CHECK(lock.release() == Released::freed);
    return database.admin().number("SELECT reopens_at FROM resource_lock_holder WHERE owner = '" + owner + "'");
  };
  const auto room = begin();
  begin();
  const auto next = answered([&] { return other.try_lock_for("api", far_longer(), permits(2)); });
  REQUIRE(next);
  CHECK(database.admin().number("SELECT acquired_at FROM resource_lock_holder WHERE owner = '" + next->owner() + "'") >=
        room);
  free_by_force(engine, "api");
}

TEST_CASE("of many who want a permit never more are inside than there are") {
  Database database;
  std::vector<Engine> engines;
  for (int i = 0; i < 2; ++i) engines.push_back(database.engine({.polling = {.longest = 50ms}}));
  std::atomic<int> inside{0}, most{0}, rounds{0};
  in_parallel(8, [&](int i) {
    auto options = permits(3);
    options.fairness = i % 4 == 0 ? Fairness::fifo : Fairness::barging;
    for (int round = 0; round < 5; ++round) {
      const auto lock = engines[static_cast<std::size_t>(i % 2)].lock("gpu", options);
      const int now = ++inside;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {}
      std::this_thread::sleep_for(1ms);
      --inside;
      ++rounds;
    }
  });
  CHECK(most <= 3);
  CHECK(rounds == 40);
}

TEST_CASE("a row tells how many permits are taken, and of how many, by the one that came last") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  const auto told = [&](std::string_view name) {
    const auto row = engine.inspect(name);
    REQUIRE(row);
    const auto listed = engine.list(name);
    REQUIRE(listed.size() == 1);
    CHECK(listed.front().permits == row->permits);
    CHECK(listed.front().limit == row->limit);
    const auto of_view = " FROM resource_lock_status WHERE name = '" + std::string(name) + "'";
    CHECK(database.admin().number("SELECT permits" + of_view) == row->permits);
    CHECK(database.admin().number("SELECT permit_limit" + of_view) == row->limit);
    return std::pair{row->permits, row->limit};
  };
  auto options = permits(4, 2);
  options.lease = 1h;
  auto dies = engine.lock("gpu", options);
  CHECK(told("gpu") == std::pair<std::int64_t, std::int64_t>{2, 4});
  auto last = other.lock("gpu", permits(5));
  CHECK(told("gpu") == std::pair<std::int64_t, std::int64_t>{3, 5});
  Refusal refusal;
  CHECK(eventually([&] { return !engine.try_lock("gpu", permits(5, 3), &refusal) && refusal.holder.permits > 0; }));
  CHECK(refusal.holder.permits == 3);
  CHECK(refusal.holder.limit == 5);
  // What is over is not taken, whether it was counted out or not.
  expire_one(database, dies);
  CHECK(told("gpu") == std::pair<std::int64_t, std::int64_t>{1, 5});
  dies.extend(1h);
  CHECK(told("gpu") == std::pair<std::int64_t, std::int64_t>{3, 5});
  CHECK(last.release() == Released::freed);
  CHECK(told("gpu") == std::pair<std::int64_t, std::int64_t>{2, 4});
  CHECK(dies.release() == Released::freed);
  CHECK(told("gpu") == std::pair<std::int64_t, std::int64_t>{0, 0});
  // Within its at-least time a permit is taken, though it was given back.
  options = permits(2);
  options.at_least = 1h;
  engine.lock("api", options).release();
  CHECK(told("api") == std::pair<std::int64_t, std::int64_t>{1, 2});
  free_by_force(engine, "api");
  const auto reader = engine.lock("book", {.mode = Mode::shared}), writer = engine.lock("pen");
  CHECK(told("book") == std::pair<std::int64_t, std::int64_t>{0, 0});
  CHECK(told("pen") == std::pair<std::int64_t, std::int64_t>{0, 0});
}

TEST_CASE("what cannot be granted is refused before anything is asked") {
  Database database;
  auto engine = database.engine();
  for (const auto& options : {permits(0), permits(2, 3), permits(2, 0), permits(-1)}) {
    const auto told = thrown_by([&] { static_cast<void>(engine.try_lock("gpu", options)); });
    CHECK(told.fault == Fault::misuse);
    CHECK(told.text.find(std::to_string(options.limit)) != std::string::npos);
  }
  LockOptions shared{.mode = Mode::shared};
  shared.reentrance = Reentrance::node;
  CHECK(thrown_by([&] { static_cast<void>(engine.try_lock("gpu", shared)); }).fault == Fault::misuse);
  shared.reentrance = {};
  CHECK(thrown_by([&] { static_cast<void>(engine.try_lock("gpu", {.mode = Mode::node})); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { static_cast<void>(engine.try_lock_all({"a", "b"}, shared)); }).fault == Fault::misuse);
}
