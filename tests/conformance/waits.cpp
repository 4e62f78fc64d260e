// The promise that a wait ends on its deadline, on a stop, or with the lock.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

const auto late = 2s * slowness();

// A wait in vain, of this length.
void check_that_it_ends(Engine& engine, Duration wait) {
  answered([&] {
    const Stopwatch time;
    CHECK(granted_nothing([&] { return engine.try_lock_for("job", wait).has_value(); }));
    CHECK(time.elapsed() >= wait);
    CHECK(time.elapsed() <= wait + late);
  });
}

// A wait that somebody else watches.
auto waiting(Engine& engine, std::stop_token stop, std::promise<void>& started) {
  return std::async(std::launch::async, [&engine, stop, &started] {
    started.set_value();
    return engine.lock(stop, "job");
  });
}

}  // namespace

TEST_CASE("a wait for a busy lock never ends before its deadline, and not more than two seconds after it") {
  Database database;
  auto holder = database.engine();
  auto engine = database.engine();
  const auto lock = holder.try_lock("job");
  REQUIRE(lock);
  for (const Duration wait : {0us, 1us, 1000us, 37000us, 250000us, 1100000us}) check_that_it_ends(engine, wait);
}

TEST_CASE("a wait for a row that a transaction keeps locked ends on its deadline as well") {
  Database database;
  auto engine = database.engine();
  engine.try_lock("job").reset();
  database.admin().block("job");
  for (const Duration wait : {0us, 100000us, 700000us}) check_that_it_ends(engine, wait);
  database.admin().unblock();
  CHECK(engine.try_lock_for("job", 1min).has_value());
}

TEST_CASE("many waiters end on their own deadlines") {
  Database database;
  auto holder = database.engine();
  auto engine = database.engine();
  const auto lock = holder.try_lock("job");
  REQUIRE(lock);
  // The shortest has time to open a connection.
  in_parallel(8, [&](int i) { check_that_it_ends(engine, 100ms * (i + 1) * slowness()); });
}

TEST_CASE("a stop ends a wait at once, also between two looks that are far apart") {
  Database database;
  auto holder = database.engine();
  auto engine = database.engine({.polling = {.first = 1h, .longest = 1h}});
  auto lock = holder.try_lock("job");
  REQUIRE(lock);
  std::stop_source stop;
  std::vector<std::function<bool()>> kinds(3, [&] { return engine.lock(stop.get_token(), "job").has_value(); });
  kinds.emplace_back([&] { return engine.try_lock_for("job", 1h, {}, stop.get_token()).has_value(); });
  kinds.emplace_back([&] { return engine.wait_free("job", 1h, stop.get_token()); });
  std::vector<std::future<bool>> waits;
  for (const auto& kind : kinds) {
    std::promise<void> started;
    waits.push_back(std::async(std::launch::async, [&] {
      started.set_value();
      return kind();
    }));
    started.get_future().wait();
  }
  // Who has left its mark has looked, and its next look is far away. What somebody has just asked for, and is stopped,
  // may be granted late, and beyond the end of its engine.
  const std::string mark = "SELECT wanted_until FROM resource_lock WHERE name = 'job'";
  CHECK(eventually([&] {
    auto stats = engine.stats();
    return stats.waiting["job"] == waits.size() && stats.requests_in_flight == 0 && database.admin().number(mark) != 0;
  }));
  stop.request_stop();
  for (auto& wait : waits) CHECK(wait.wait_for(10s * slowness()) == std::future_status::ready);
  lock->release();  // whoever was deaf to it goes on now
  for (auto& wait : waits) CHECK_FALSE(wait.get());
}

TEST_CASE("a wait that was stopped before it began takes nothing, also if the lock is free") {
  Database database;
  auto engine = database.engine();
  std::stop_source stop;
  stop.request_stop();
  const auto lock = engine.lock(stop.get_token(), "job");
  CHECK_FALSE(lock);
  CHECK(database.admin().held() == 0);
}

TEST_CASE("a waiter gets the lock when it is released, and a waiter without end as well") {
  Database database;
  auto holder = database.engine();
  auto engine = database.engine();
  auto lock = holder.try_lock("job");
  REQUIRE(lock);
  std::promise<void> started;
  auto wait = waiting(engine, {}, started);
  started.get_future().wait();
  CHECK(wait.wait_for(50ms) == std::future_status::timeout);
  lock.reset();
  const Stopwatch time;
  CHECK(wait.get().has_value());
  CHECK(time.elapsed() < late);
  CHECK(engine.lock("job").valid());
}

TEST_CASE("a waiter gets the lock when the lease of a vanished holder ends") {
  Database database;
  auto engine = database.engine();
  auto gone = engine.try_lock("job", {.lease = 300ms, .renew = false});
  REQUIRE(gone);
  gone->detach();
  const Stopwatch time;
  CHECK(engine.try_lock_for("job", 2min).has_value());
  CHECK(time.elapsed() < 300ms + late);
}

TEST_CASE("waiting for a name to be free takes nothing") {
  Database database;
  auto holder = database.engine();
  auto engine = database.engine();
  CHECK(engine.wait_free("nobody ever had it", 0s));
  auto lock = holder.try_lock("job");
  REQUIRE(lock);
  answered([&] {
    const Stopwatch time;
    CHECK_FALSE(engine.wait_free("job", 150ms));
    CHECK(time.elapsed() >= 150ms);
    CHECK(time.elapsed() <= 150ms + late);
  });
  std::stop_source stop;
  stop.request_stop();
  const Stopwatch time;
  CHECK_FALSE(engine.wait_free("job", 60s, stop.get_token()));
  CHECK(time.elapsed() < std::min(10s * slowness(), 50s));
  auto wait = std::async(std::launch::async, [&] { return engine.wait_free("job", 60s); });
  CHECK(lock->release() == Released::freed);
  CHECK(wait.get());
  CHECK(database.admin().held() == 0);
}
