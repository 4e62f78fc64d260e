// The promise that coroutines wait for locks as threads do, and that none of them needs a thread.
#include "support/coroutine.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/loop.hpp"

#include <dlock/coroutine.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// Runs it to its end, and throws what it has ended with.
void run(Loop& loop, const Coroutine& coroutine) {
  REQUIRE(loop.run_until([&] { return coroutine.done(); }));
  coroutine.check();
}

bool one_waits(const Engine& engine, const std::string& name) { return engine.stats().waiting[name] == 1; }

}  // namespace

TEST_CASE("a coroutine is granted what is free, goes on where the executor runs it, and is told of the release") {
  Database database;
  Loop loop;
  auto engine = database.engine({.executor = loop.executor()});
  const auto here = std::this_thread::get_id();
  std::optional<Released> released;
  run(loop, [](Engine& locks, std::thread::id thread, std::optional<Released>& told) -> Coroutine {
    const LockOptions options{.label = "a coroutine"};
    auto lock = co_await dlock::lock(locks, "first", options);
    CHECK(lock.valid());
    CHECK(locks.inspect("first")->label == "a coroutine");
    auto second = co_await dlock::try_lock(locks, "second");
    REQUIRE(second);
    auto third = co_await dlock::try_lock_for(locks, "third", 1s);
    REQUIRE(third);
    CHECK(std::this_thread::get_id() == thread);
    told = co_await dlock::release(locks, std::move(lock));
    CHECK(std::this_thread::get_id() == thread);
    CHECK(co_await dlock::release(locks, std::move(*second)) == Released::freed);
  }(engine, here, released));
  CHECK(released == Released::freed);
  CHECK(database.admin().held() == 0);
}

TEST_CASE("a coroutine goes on without an executor as well, on a thread of the engine") {
  Database database;
  auto engine = database.engine();
  std::atomic<bool> elsewhere = false;
  const auto coroutine = [](Engine& locks, std::thread::id thread, std::atomic<bool>& told) -> Coroutine {
    {
      const auto lock = co_await dlock::lock(locks, "job");
      CHECK(lock.valid());
    }
    told = std::this_thread::get_id() != thread;
  }(engine, std::this_thread::get_id(), elsewhere);
  CHECK(eventually([&] { return elsewhere.load(); }));
  CHECK(eventually([&] { return coroutine.done(); }));
}

TEST_CASE("a coroutine is told that a lock is busy, that its time is up, and that it was stopped") {
  Database database;
  Loop loop;
  auto other = database.engine();
  const auto held = other.lock("job");
  auto engine = database.engine({.executor = loop.executor()});
  run(loop, [](Engine& locks) -> Coroutine {
    CHECK_FALSE(co_await dlock::try_lock(locks, "job"));
    const auto wait = 200ms * slowness();
    const Stopwatch time;
    CHECK_FALSE(co_await dlock::try_lock_for(locks, "job", wait));
    CHECK(time.elapsed() >= wait);
  }(engine));
  std::stop_source source;
  const auto waits = [](Engine& locks, std::stop_token stop) -> Coroutine {
    const LockOptions usual;
    CHECK_FALSE(co_await dlock::lock(locks, "job", usual, stop));
    CHECK_FALSE(co_await dlock::try_lock_for(locks, "job", 1h, usual, stop));  // it was stopped before
  }(engine, source.get_token());
  REQUIRE(loop.run_until([&] { return one_waits(engine, "job"); }));
  CHECK_FALSE(waits.done());
  source.request_stop();
  run(loop, waits);
}

TEST_CASE("what a coroutine does wrong, and what is broken, is thrown where it waits") {
  Database database;
  Loop loop;
  auto engine = database.engine({.executor = loop.executor()});
  database.admin().run("ALTER TABLE resource_lock RENAME TO resource_lock_away");
  run(loop, [](Engine& locks) -> Coroutine {
    std::optional<Fault> misuse, broken;
    try {
      const auto lock = co_await dlock::lock(locks, "");
    } catch (const Error& error) { misuse = error.fault(); }
    try {
      const auto lock = co_await dlock::lock(locks, "job");
    } catch (const Error& error) { broken = error.fault(); }
    CHECK(misuse == Fault::misuse);
    CHECK(broken == Fault::schema);
  }(engine));
  database.admin().run("ALTER TABLE resource_lock_away RENAME TO resource_lock");
}

TEST_CASE("a request that begins, and throws all the same, goes on once") {
  std::function<void(Released)> engines;
  std::stop_token stopped;
  std::stop_source stop;
  int answers = 0, failures = 0;
  const auto await = [&](bool answered) -> Coroutine {
    Awaitable<Released> request(
        [&, answered](std::stop_token ended, std::function<void(Released)> answer) {
          stopped = std::move(ended);
          engines = std::move(answer);
          if (answered) std::thread([&] { engines(Released::freed); }).join();
          throw std::bad_alloc();
        },
        stop.get_token());
    try {
      answers += co_await request == Released::freed ? 1 : 0;
    } catch (const std::bad_alloc&) { ++failures; }
  };
  {
    const auto answered = await(true);
    CHECK(answered.done());
    CHECK(answers == 1);
    CHECK(failures == 0);
    CHECK_FALSE(stopped.stop_requested());
  }
  const auto failed = await(false);
  CHECK(failed.done());
  CHECK(stopped.stop_requested());
  engines(Released::freed);  // later
  stop.request_stop();
  CHECK(answers == 1);
  CHECK(failures == 1);
}

TEST_CASE("a hundred coroutines on one thread take turns on one name") {
  Database database;
  Loop loop;
  auto engine = database.engine({.executor = loop.executor()});
  constexpr int all = 100;
  int inside = 0, most = 0, done = 0;
  std::vector<Coroutine> coroutines;
  for (int i = 0; i < all; ++i)
    coroutines.push_back([](Engine& locks, int& in, int& top, int& ended) -> Coroutine {
      auto lock = co_await dlock::lock(locks, "job");
      top = std::max(top, ++in);
      CHECK(co_await dlock::try_lock(locks, "of its own/" + std::to_string(ended)));  // others run meanwhile
      --in;
      CHECK(co_await dlock::release(locks, std::move(lock)) == Released::freed);
      ++ended;
    }(engine, inside, most, done));
  CHECK(loop.run_until([&] { return done == all; }));
  for (const auto& coroutine : coroutines) coroutine.check();
  CHECK(most == 1);
}

TEST_CASE("a coroutine that waits when its engine ends goes on with misuse") {
  Database database;
  Loop loop;
  auto other = database.engine();
  const auto held = other.lock("job");
  std::optional<Engine> engine = database.engine({.executor = loop.executor()});
  const auto waits = [](Engine& locks) -> Coroutine { const auto lock = co_await dlock::lock(locks, "job"); }(*engine);
  REQUIRE(loop.run_until([&] { return one_waits(*engine, "job"); }));
  engine.reset();
  CHECK(thrown_by([&] { run(loop, waits); }).fault == Fault::misuse);
}

TEST_CASE("a coroutine that is destroyed while it waits stops waiting, and holds nothing") {
  Database database;
  Loop loop;
  auto other = database.engine();
  auto held = other.lock("job");
  auto engine = database.engine({.executor = loop.executor()});
  std::stop_source unused;
  for (const auto& stop : {std::stop_token(), unused.get_token()}) {
    {
      const auto waits = [](Engine& locks, std::stop_token token) -> Coroutine {
        const LockOptions usual;
        const auto lock = co_await dlock::lock(locks, "job", usual, token);
        FAIL("it was destroyed");
      }(engine, stop);
      REQUIRE(loop.run_until([&] { return one_waits(engine, "job"); }));
    }
    CHECK(loop.run_until([&] { return !one_waits(engine, "job"); }));
  }
  // One that is granted it, and destroyed before it goes on.
  {
    const auto granted = [](Engine& locks) -> Coroutine {
      const auto lock = co_await dlock::lock(locks, "free");
      FAIL("it was destroyed");
    }(engine);
    REQUIRE(eventually([&] { return !database.admin().owner("free").empty(); }));
  }
  CHECK(loop.run_until([&] { return database.admin().owner("free").empty(); }));
  held.release();
  CHECK(other.try_lock("job"));
}
