// The promise that a lock goes from thread to thread inside an engine, and that others get their turn.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

LockOptions task() {
  LockOptions options;
  options.reentrance = Reentrance::none;
  return options;
}

}  // namespace

TEST_CASE("many threads on one name are alone with it, and their tokens grow") {
  Database database;
  std::vector<Engine> engines;
  for (int i = 0; i < 2; ++i) engines.push_back(database.engine());
  std::atomic<long long> unguarded = 0, last = 0;  // read and written in two steps: only the lock keeps them apart
  in_parallel(8, [&](int i) {
    for (int round = 0; round < 15; ++round) {
      const auto lock = engines[static_cast<std::size_t>(i) % 2].try_lock_for("job", 2min, task());
      REQUIRE(lock);
      const long long before = unguarded;
      CHECK(number(lock->token()) > last);
      last = number(lock->token());
      std::this_thread::yield();
      unguarded = before + 1;
    }
  });
  CHECK(unguarded == 8 * 15);
}

TEST_CASE("an engine whose threads never let go of the lock gives another engine its turn") {
  for (const auto local : {0ms, 10ms}) {
    Database database;
    auto busy = database.engine({.hand_overs = {.in_a_row = 16, .time = 100ms, .local = local}});
    auto other = database.engine();
    std::atomic<bool> done = false;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        while (!done) static_cast<void>(busy.try_lock_for("job", 2min, task()));
      });
    int turns = 0;
    for (; turns < 5; ++turns) {
      // There is somebody to hand it over to: else it is free for a moment, for whoever comes.
      CHECK(eventually([&] { return busy.stats().waiting["job"] > 5; }));
      if (!other.try_lock_for("job", 2min, task())) break;
    }
    done = true;
    threads.clear();
    CHECK(turns == 5);
  }
}

TEST_CASE("an engine whose line is never empty gives another engine its turn, also while the lock goes on in memory") {
  constexpr std::size_t in_line = 7;
  Database database;
  auto busy = database.engine({.hand_overs = {.local = 10ms}}), other = database.engine();
  std::atomic<bool> done = false;
  std::atomic<int> grants = 0;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i <= in_line; ++i)
    threads.emplace_back([&] {
      while (!done) {
        const auto lock = busy.try_lock_for("job", 2min, task());
        ++grants;
        // Only then is it let go of: without anybody asleep in line it would be free, for whoever comes.
        while (!done && busy.stats().waiting["job"] < in_line) std::this_thread::yield();
      }
    });
  int turns = 0;
  for (; turns < 5; ++turns) {
    const int before = grants;
    CHECK(eventually([&] { return grants > before + 20; }));  // it goes round
    if (!other.try_lock_for("job", 10s * slowness(), task())) break;
  }
  done = true;
  threads.clear();
  CHECK(turns == 5);
}

TEST_CASE("a lock that stays closed for its at-least time is not handed over before") {
  Database database;
  auto engine = database.engine();
  auto options = task();
  options.at_least = 1s;
  const Stopwatch time;
  auto lock = engine.try_lock("job", options);
  REQUIRE(lock);
  std::jthread waiter([&] {
    const auto next = engine.try_lock_for("job", 2min, task());
    CHECK(next.has_value());
    CHECK(time.elapsed() >= 1s - 2ms);  // give or take a step of the database's clock
  });
  lock->release();
}

TEST_CASE("a wait that says no never leaves a lock behind, whatever is handed over meanwhile") {
  Database database;
  auto engine = database.engine();
  std::atomic<int> granted = 0, refused = 0;
  in_parallel(6, [&](int i) {
    std::minstd_rand random(static_cast<unsigned>(i) + 7);
    for (int round = 0; round < 30; ++round) {
      const Duration patience{static_cast<std::int64_t>(random() % 4000)};
      if (answered([&] { return engine.try_lock_for("job", patience, task()); })) ++granted;
      else ++refused;
    }
  });
  MESSAGE(granted.load() << " granted, " << refused.load() << " refused");
  CHECK(eventually([&] { return database.admin().held() == 0; }));
  CHECK(engine.try_lock_for("job", 2min, task()).has_value());
  // The mark is gone with the last who waited, or with the next grant that nobody waits behind.
  CHECK(eventually([&] { return database.admin().number("SELECT count(*) FROM resource_lock_waiter") == 0; }));
}

TEST_CASE("a wait that ended without the lock leaves no mark") {
  Database database;
  auto holder = database.engine(), engine = database.engine();
  const auto lock = holder.try_lock("job");
  REQUIRE(lock);
  // Who gives up has little time for it: on a busy machine the mark is sometimes left to its end.
  CHECK(eventually([&] {
    CHECK_FALSE(answered([&] { return engine.try_lock_for("job", 300ms); }));
    return database.admin().number("SELECT wanted_until FROM resource_lock WHERE name = 'job'") == 0;
  }));
}
