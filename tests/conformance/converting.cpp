// The promise that a writer becomes a reader and a reader a writer without a gap, the latter only where it is alone.
#include "support/eventually.hpp"
#include "support/hands.hpp"
#include "support/readers.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <barrier>
#include <future>
#include <stop_token>
#include <thread>
#include <utility>

using namespace dlock;
using namespace dlock::test;
using namespace dlock::test::readers;
using namespace std::chrono_literals;

TEST_CASE("what a writer holds becomes a reader's without a gap, and the only reader a writer") {
  Database database;
  auto engine = database.engine();
  auto other = apart(database);
  auto lock = engine.lock("a", {.label = "who", .metadata = "why"});
  const auto written = lock.token();
  lock.downgrade();
  CHECK(lock.valid());
  CHECK(lock.token() > written);
  CHECK_FALSE(other.try_lock("a"));
  auto beside = other.try_lock("a", reading);
  REQUIRE(beside);
  CHECK_FALSE(lock.try_upgrade());
  CHECK(lock.valid());
  const auto read = beside->token();
  beside->release();
  CHECK(lock.try_upgrade());
  CHECK(lock.token() > read);
  CHECK_FALSE(other.try_lock("a", reading));
  CHECK(engine.inspect("a")->metadata == "why");
  CHECK(engine.inspect("a")->label == "who");
  lock.extend(1h);
  CHECK(lock.release() == Released::freed);
  CHECK(holders(database) == 0);
  CHECK(thrown_by([&] { lock.downgrade(); }).fault == Fault::lost);
}

TEST_CASE("nobody comes in while a writer becomes a reader, and the only reader a writer") {
  Database database;
  auto engine = apart(database), other = apart(database);
  auto lock = engine.lock("a", {.lease = 1h});
  std::atomic<int> tries{0}, entered{0};
  std::jthread rival([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (answered([&] { return other.try_lock("a"); })) ++entered;
      ++tries;
    }
  });
  for (int round = 0; round < 50 || tries < 50; ++round) {
    lock.downgrade();
    CHECK(eventually([&] { return lock.try_upgrade(); }));
  }
  rival.request_stop();
  rival.join();
  CHECK(entered == 0);
  CHECK(lock.valid());
}

TEST_CASE("who waits for a writer that becomes a reader comes in") {
  Database database;
  auto engine = apart(database), other = apart(database);
  auto lock = engine.lock("a");
  auto waiting = std::async(std::launch::async, [&] { return read_in(other); });
  auto here = std::async(std::launch::async, [&] { return read_in(engine); });
  lock.downgrade();
  CHECK(waiting.get());
  CHECK(here.get());
}

TEST_CASE("of two readers that would write at one moment neither does, and both read on") {
  Database database;
  auto engine = apart(database), other = apart(database);
  for (int round = 0; round < 20; ++round) {
    auto one = engine.lock("a", {.mode = Mode::shared, .lease = 1h});
    auto two = other.lock("a", {.mode = Mode::shared, .lease = 1h});
    std::barrier both(2);
    const auto upgraded = [&](Lock& lock) {
      both.arrive_and_wait();
      return answered([&] { return lock.try_upgrade(); });
    };
    auto second = std::async(std::launch::async, [&] { return upgraded(two); });
    CHECK_FALSE(upgraded(one));
    CHECK_FALSE(second.get());
    one.check();
    two.check();
    // Once it is alone it may.
    CHECK(one.release() == Released::freed);
    CHECK(two.try_upgrade());
    CHECK(holders(database) == 0);
  }
}

TEST_CASE("a reader whose lease is over keeps nobody from writing, and is not renewed after that") {
  Database database;
  auto engine = apart(database), other = apart(database);
  auto dead = other.lock("a", {.mode = Mode::shared, .lease = 1h});
  auto lock = engine.lock("a", {.mode = Mode::shared, .lease = 1h});
  CHECK_FALSE(lock.try_upgrade());
  expire_one(database, dead);
  CHECK(lock.try_upgrade());
  CHECK(lock.token() > dead.token());
  CHECK(thrown_by([&] { dead.extend(1h); }).fault == Fault::lost);
  CHECK_FALSE(dead.valid());
  lock.check();
  lock.downgrade();
  CHECK(holders(database) >= 1);
  CHECK_FALSE(other.try_lock("a"));
}

TEST_CASE("a reader that is one no more is told so where it would write, not that there are others") {
  Database database;
  auto engine = apart(database), other = apart(database);
  for (const bool taken : {true, false}) {
    auto lock = engine.lock("a", {.mode = Mode::shared, .lease = 1h, .renew = false});
    REQUIRE(other.force_release("a", lock.token(), "out of its way"));
    const auto next = taken ? other.try_lock("a") : std::nullopt;
    CHECK(thrown_by([&] { lock.try_upgrade(); }).fault == Fault::lost);
    CHECK_FALSE(lock.valid());
  }
}

TEST_CASE("a writer that waits does not keep the only reader from writing, and comes after it") {
  Database database;
  auto engine = apart(database), other = apart(database);
  auto lock = engine.lock("a", {.mode = Mode::shared, .lease = 1h});
  auto waiting = std::async(std::launch::async, [&] {
    return answered([&] { return other.try_lock_for("a", far_longer(), {.fairness = Fairness::fifo}); });
  });
  CHECK(eventually([&] { return database.admin().number("SELECT count(*) FROM resource_lock_waiter") == 1; }));
  CHECK(lock.try_upgrade());
  const auto written = lock.token();
  CHECK(waiting.wait_for(0s) == std::future_status::timeout);
  lock.downgrade();
  CHECK(lock.try_upgrade());
  CHECK(lock.release() == Released::freed);
  const auto next = waiting.get();
  REQUIRE(next);
  CHECK(next->token() > written);
}

TEST_CASE("who waits elsewhere for a writer that becomes a reader hears of it") {
  Database database;
  EngineOptions patient;
  patient.polling = {.first = 1h, .longest = 1h};
  auto engine = apart(database), other = database.engine(patient);
  auto lock = engine.lock("a", {.lease = 1h});
  int heard = 0;
  for (int round = 0; round < 10; ++round) {
    INFO("round " << round);
    database.admin().run("UPDATE resource_lock SET wanted_until = 0 WHERE name = 'a'");
    auto waiting = std::async(std::launch::async, [&] {
      return answered([&] { return other.try_lock_for("a", 20s * slowness(), {.mode = Mode::shared, .lease = 1h}); });
    });
    CHECK(eventually(
        [&] { return database.admin().number("SELECT wanted_until FROM resource_lock WHERE name = 'a'") > 0; }));
    const Stopwatch since;
    lock.downgrade();
    CHECK(waiting.get());
    heard += since.elapsed() < 3s ? 1 : 0;  // who hears nothing looks again after more than seven seconds
    CHECK(lock.try_upgrade());
  }
  CHECK(heard > 0);
}

TEST_CASE("what an earlier gate has left of a reader keeps it from none that is made of a writer") {
  Database database;
  const auto table = database.table();
  auto engine = apart(database);
  Hand reader(*table, 1, "a");
  REQUIRE(reader.reading().acquire());
  database.admin().expire("a");
  auto lock = engine.lock("a", {.lease = 1h});
  lock.downgrade();
  CHECK(reader.acquire());
  CHECK(lock.valid());
  free_by_force(engine, "a");
}
