// The promise that those who wait in turn are granted in the order in which they came.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"
#include "support/slowness.hpp"

#include "store/waiter_table.hpp"

#include <doctest/doctest.h>

#include <future>
#include <mutex>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

LockOptions in_turn() {
  LockOptions options;
  options.fairness = Fairness::fifo;
  options.reentrance = Reentrance::none;
  return options;
}

// Who was granted the lock, in that order.
struct Order {
  std::mutex mutex;
  std::vector<int> seen;
  void add(int i) {
    const std::lock_guard guard(mutex);
    seen.push_back(i);
  }
};

// One that waits, is granted, and lets go.
std::jthread waiter(Engine& engine, int number, const LockOptions& options, Order& order) {
  return std::jthread([&engine, number, options, &order] {
    auto lock = engine.try_lock_for("job", 4min, options);
    if (lock) order.add(number);
  });
}

bool queued(Engine& engine, std::size_t count) {
  return eventually([&] {
    std::size_t tickets = 0;
    for (const auto& one : engine.waiters("job")) tickets += one.ticket != 0 ? 1 : 0;
    return tickets == count;
  });
}

store::Wait wait_of(std::string_view owner, Duration ttl) {
  return {"job", owner, "node", "label", {}, store::Wait::Discipline::fifo, ttl, std::nullopt};
}

const std::string stranger(32, 'f');

}  // namespace

TEST_CASE("waiters of several engines are granted in the order in which they came") {
  Database database;
  std::vector<Engine> engines;
  for (int i = 0; i < 3; ++i) engines.push_back(database.engine());
  auto lock = engines[0].try_lock("job");
  REQUIRE(lock);
  Order order;
  std::vector<std::jthread> threads;
  std::vector<int> expected;
  for (int i = 0; i < 9; ++i) {
    threads.push_back(waiter(engines[static_cast<std::size_t>(i) % 3], i, in_turn(), order));
    expected.push_back(i);
    REQUIRE(queued(engines[0], expected.size()));
  }
  lock->release();
  threads.clear();
  CHECK(order.seen == expected);
  CHECK(eventually([&] { return engines[0].waiters("job").empty(); }));
}

TEST_CASE("a try is busy while somebody queues, and who waits without a ticket joins the queue") {
  Database database;
  auto first = database.engine(), second = database.engine();
  auto lock = first.try_lock("job");
  REQUIRE(lock);
  Order order;
  auto one = waiter(second, 1, in_turn(), order);
  REQUIRE(queued(first, 1));
  LockOptions any;
  any.reentrance = Reentrance::none;
  auto two = waiter(first, 2, any, order);
  REQUIRE(queued(first, 2));
  lock->release();
  one.join();
  two.join();
  CHECK(order.seen == std::vector<int>{1, 2});

  // Free, but promised.
  const auto table = database.table();
  patiently([&] { return table->waiting().draw_ticket(wait_of(stranger, 1h), soon()); });
  CHECK_FALSE(first.try_lock("job"));
  CHECK_FALSE(second.try_lock("job"));
  table->waiting().remove("job", stranger, later(BootClock::now(), 1min));
  CHECK(first.try_lock("job").has_value());
}

TEST_CASE("a waiter that died blocks the queue no longer than its ticket lives") {
  Database database;
  auto engine = database.engine();
  engine.try_lock("job").reset();
  const auto table = database.table();
  const Stopwatch time;
  patiently([&] { return table->waiting().draw_ticket(wait_of(stranger, 1500ms), soon()); });
  auto lock = engine.try_lock_for("job", 2min, in_turn());
  CHECK(lock.has_value());
  CHECK(time.elapsed() < 30s * slowness());
  // Its number is over: it cannot come back with it.
  const store::WaiterKey key{"job", stranger};
  CHECK_FALSE(table->waiting().renew_waiters({&key, 1}, 1h, later(BootClock::now(), 1min)).front());
}

TEST_CASE("a ticket lives as long as its waiter waits") {
  Database database;
  const auto life = 5s * slowness();
  auto first = database.engine({.ticket = life}), second = database.engine({.ticket = life});
  auto lock = first.try_lock("job");
  REQUIRE(lock);
  Order order;
  auto one = waiter(second, 1, in_turn(), order);
  REQUIRE(queued(first, 1));
  const auto drawn = first.waiters("job");
  REQUIRE(drawn.size() == 1);
  const auto ends = [&] {
    return database.admin().number("SELECT expires_at FROM resource_lock_waiter WHERE name = 'job'");
  };
  for (int i = 0; i < 2; ++i) {
    const auto before = ends();
    CHECK(eventually([&] { return ends() > before; }));
  }
  const auto now = first.waiters("job");
  REQUIRE(now.size() == 1);
  CHECK(now.front().ticket == drawn.front().ticket);
  lock->release();
  one.join();
  CHECK(order.seen == std::vector<int>{1});
}

TEST_CASE("waiters that give up leave no ticket, and the next one is granted") {
  Database database;
  auto holder = database.engine(), engine = database.engine();
  auto lock = holder.try_lock("job");
  REQUIRE(lock);
  CHECK_FALSE(answered([&] { return engine.try_lock_for("job", 200ms, in_turn()); }));
  std::stop_source stop;
  auto stopped = std::async(std::launch::async, [&] { return engine.lock(stop.get_token(), "job", in_turn()); });
  REQUIRE(queued(holder, 1));
  stop.request_stop();
  CHECK_FALSE(stopped.get());
  CHECK(eventually([&] { return database.admin().number("SELECT count(*) FROM resource_lock_waiter") == 0; }));
  lock->release();
  CHECK(engine.try_lock("job").has_value());
}
