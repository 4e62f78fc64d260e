// The promise that a lock can be used wherever the standard library wants a mutex.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <thread>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a mutex works with unique_lock, scoped_lock and lock_guard") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  Mutex one(engine, "one"), two(engine, "two");
  {
    const std::scoped_lock both(one, two);
    CHECK_FALSE(other.try_lock("one"));
    CHECK_FALSE(other.try_lock("two"));
  }
  CHECK(database.admin().held() == 0);
  {
    const std::lock_guard guard(one);
    CHECK(database.admin().held() == 1);
  }
  {
    std::unique_lock guard(one, std::try_to_lock);
    CHECK(guard.owns_lock());
    guard.unlock();
    CHECK(database.admin().held() == 0);
    CHECK(guard.try_lock_for(1min));
  }
  {
    const std::unique_lock guard(one, 1min);
    CHECK(guard.owns_lock());
    const std::unique_lock until(two, std::chrono::system_clock::now() + 1min);
    CHECK(until.owns_lock());
  }
  CHECK(database.admin().held() == 0);
}

TEST_CASE("a mutex excludes the threads of one engine and other engines") {
  Database database;
  auto engine = database.engine({.connections = 3});
  auto other = database.engine();
  Mutex mine(engine, "counter"), theirs(other, "counter");
  std::atomic<int> number{0};  // atomic in its steps, unguarded as a whole
  in_parallel(4, [&](int i) {
    for (int round = 0; round < 5; ++round) {
      const std::lock_guard guard(i % 2 == 0 ? mine : theirs);
      const int seen = number;
      std::this_thread::yield();
      number = seen + 1;
    }
  });
  CHECK(number == 20);
}

TEST_CASE("std::lock takes two mutexes in any order on many threads without a deadlock") {
  Database database;
  auto engine = database.engine({.connections = 3});
  Mutex one(engine, "one"), two(engine, "two");
  std::atomic<int> rounds{0};
  in_parallel(2, [&](int i) {
    for (int round = 0; round < 5; ++round) {
      if (i == 0) std::lock(one, two);
      else std::lock(two, one);
      const std::lock_guard first(one, std::adopt_lock), second(two, std::adopt_lock);
      ++rounds;
    }
  });
  CHECK(rounds == 10);
}

TEST_CASE("a mutex is recursive per thread, together with what its thread holds through the same engine") {
  Database database;
  auto engine = database.engine();
  Mutex mutex(engine, "job");
  mutex.lock();
  CHECK(mutex.try_lock());
  const auto plain = engine.try_lock("job");
  REQUIRE(plain);
  CHECK(plain->token() == mutex.held().token());
  std::thread([&] {
    CHECK_FALSE(mutex.try_lock());
    CHECK_FALSE(answered([&] { return mutex.try_lock_for(1ms); }));
    CHECK(thrown_by([&] { mutex.held(); }).fault == Fault::misuse);
    mutex.unlock();  // it holds nothing
  }).join();
  mutex.unlock();
  mutex.unlock();
  CHECK(database.admin().held() == 1);
  CHECK(thrown_by([&] { mutex.held(); }).fault == Fault::misuse);
}

TEST_CASE("trying with a time limit gives up at it, never before, and takes any duration") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  Mutex mutex(engine, "job");
  {
    const auto lock = other.try_lock("job");
    Stopwatch watch;
    CHECK_FALSE(answered([&] {
      watch = Stopwatch();
      return mutex.try_lock_for(200ms);
    }));
    CHECK(watch.elapsed() >= 200ms);
    CHECK(watch.elapsed() < 200ms + 2s * slowness());
    CHECK_FALSE(answered([&] { return mutex.try_lock_for(-1h); }));
    CHECK_FALSE(answered([&] { return mutex.try_lock_until(std::chrono::steady_clock::time_point::min()); }));
    CHECK_FALSE(answered([&] { return mutex.try_lock_until(std::chrono::system_clock::now() - 1h); }));
    const auto end = std::chrono::steady_clock::now() + 100ms;
    CHECK_FALSE(answered([&] { return mutex.try_lock_until(end); }));
    CHECK(std::chrono::steady_clock::now() >= end);
  }
  CHECK(mutex.try_lock_for(std::chrono::hours::max()));
  CHECK(mutex.try_lock_for(std::chrono::duration<double>(1e300)));
  CHECK(mutex.try_lock_until(std::chrono::steady_clock::time_point::max()));
  for (int i = 0; i < 3; ++i) mutex.unlock();
}

TEST_CASE("unlocking a lost mutex does not throw; the observer was told, and held() knows") {
  Database database;
  EventLog news;
  auto engine = database.engine({.observer = news.observer()});
  auto other = database.engine();
  Mutex mutex(engine, "job", {.lease = 1h});
  mutex.lock();
  CHECK(other.force_release("job", mutex.held().token()));
  const auto next = other.try_lock("job");
  REQUIRE(next);
  mutex.unlock();  // nobody had noticed yet
  REQUIRE(news.comes(Event::Kind::lost));
  CHECK(database.admin().owner("job") == next->owner());

  Mutex noticed(engine, "noticed", renewed_often());
  noticed.lock();
  CHECK(other.force_release("noticed", noticed.held().token()));
  CHECK(eventually([&] { return noticed.held().loss().has_value(); }));
  CHECK(thrown_by([&] { noticed.held().check(); }).fault == Fault::lost);
  noticed.unlock();
}

TEST_CASE("a mutex outlives the handle it was made with, and releases what it holds at its end") {
  Database database;
  std::optional<Engine> engine(database.engine());
  {
    Mutex mutex(*engine, "job");
    engine.reset();
    mutex.lock();
    CHECK(database.admin().held() == 1);
  }
  CHECK(database.admin().held() == 0);
}

TEST_CASE("a mutex of another reentrance or with a bad name is refused before anything is sent") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  CHECK(thrown_by([&] { Mutex(engine, "job", {.reentrance = Reentrance::node}); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { Mutex(engine, ""); }).fault == Fault::misuse);
  Mutex mutex(engine, "job");  // recursive whatever the engine's default is
  mutex.lock();
  CHECK(mutex.try_lock());
  mutex.unlock();
  mutex.unlock();
}
