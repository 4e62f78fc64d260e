// The promise that a waiter wakes when the lock is released, not when it next looks.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// An engine whose waiters look by themselves so rarely.
EngineOptions looking_every(Duration interval) {
  EngineOptions options;
  options.polling.first = options.polling.longest = interval;
  return options;
}

// Who sleeps looks after 7.5 s all the same, to mark the name anew.
constexpr auto before_mark_is_renewed = 5s;

// Waits, and lets go at once. Whether it was granted the lock.
auto waiting(Engine& engine) {
  return std::async(std::launch::async, [&engine] { return engine.try_lock_for("job", 4min).has_value(); });
}

bool marked(Database& database) {
  return database.admin().number("SELECT wanted_until FROM resource_lock WHERE name = 'job'") > 0;
}

// Two engines in which one waits in turn, and looks rarely; the first one holds the lock.
struct TwoEngines {
  static inline const Duration between_looks = 30s * std::min(slowness(), 6);
  static EngineOptions options() {
    auto options = looking_every(between_looks);
    options.fairness = Fairness::fifo;
    return options;
  }
  long long tickets() { return database.admin().number("SELECT count(*) FROM resource_lock_waiter"); }

  Database database{};
  Engine one = database.engine(options()), other = database.engine(options());
  Lock lock = one.lock("job");
};

// Where the holder has to notify, it learns with its first release that somebody listens.
void let_hear(Database& database, Engine& holder) {
  auto eager = database.engine();
  auto lock = holder.try_lock("job");
  REQUIRE(lock);
  auto first = waiting(eager);
  REQUIRE(eventually([&] { return marked(database); }));
  lock->release();
  REQUIRE(first.get());
  database.admin().run("UPDATE resource_lock SET wanted_until = 0 WHERE name = 'job'");
}

}  // namespace

TEST_CASE("a waiter in another engine wakes at the release") {
  Database database;
  // A mark that could not be left in a moment is tried again with the next look.
  const Duration between_looks = 10s * std::min(slowness(), 6);
  auto holder = database.engine(), waiter = database.engine(looking_every(between_looks));
  let_hear(database, holder);
  for (int round = 0; round < 5; ++round) {
    auto lock = holder.lock("job");
    database.admin().run("UPDATE resource_lock SET wanted_until = 0 WHERE name = 'job'");  // of the round before
    auto wait = waiting(waiter);
    REQUIRE(eventually([&] { return marked(database); }, std::chrono::minutes{3}));
    CHECK(wait.wait_for(0s) == std::future_status::timeout);
    const Stopwatch time;
    lock.release();
    CHECK(wait.get());
    CHECK(time.elapsed() < between_looks / 2);
  }
}

TEST_CASE("threads of one engine wake each other, one after the other") {
  Database database;
  auto engine = database.engine(looking_every(1h));
  auto lock = engine.try_lock("job", {.reentrance = Reentrance::none});
  REQUIRE(lock);
  std::vector<std::future<bool>> waits;
  for (int i = 0; i < 20; ++i) waits.push_back(waiting(engine));
  const Stopwatch time;
  lock->release();
  for (auto& wait : waits) CHECK(wait.get());
  CHECK(time.elapsed() < 30s * slowness());
}

TEST_CASE("those who wait in line in two engines wake each other, whoever has let go") {
  TwoEngines here;
  std::vector<std::future<bool>> waits;
  for (int i = 0; i < 6; ++i)
    for (auto* engine : {&here.one, &here.other}) waits.push_back(waiting(*engine));
  REQUIRE(eventually([&] { return here.tickets() == 12; }));
  const Stopwatch time;
  here.lock.release();
  for (auto& wait : waits) CHECK(wait.get());
  CHECK(time.elapsed() < TwoEngines::between_looks / 2);
}

TEST_CASE("who waits behind a ticket of another engine hears that one's release, however long it holds the lock") {
  TwoEngines here;
  auto first = std::async(std::launch::async, [&] { return here.other.try_lock_for("job", 4min); });
  REQUIRE(eventually([&] { return here.tickets() == 1; }));
  auto second = waiting(here.one);
  REQUIRE(eventually([&] { return here.tickets() == 2; }));
  here.lock.release();
  auto held = first.get();
  REQUIRE(held);
  std::this_thread::sleep_for(1500ms);  // no statement that listens lasts as long: what is heard is asked for since
  const Stopwatch time;
  held->release();
  CHECK(second.get());
  CHECK(time.elapsed() < before_mark_is_renewed);
}

TEST_CASE("from a release to the next holder it takes milliseconds, in a process and between two") {
  Database database;
  const Duration between_looks = 10s * std::min(slowness(), 6);
  auto engine = database.engine(looking_every(1h)), other = database.engine(looking_every(between_looks));
  let_hear(database, engine);
  // One release, and it goes from one to the next.
  constexpr int waiters = 20;
  std::vector<std::future<bool>> waits;
  {
    auto lock = engine.try_lock("job", {.reentrance = Reentrance::none});
    REQUIRE(lock);
    for (int i = 0; i < waiters; ++i) waits.push_back(waiting(engine));
    // Nobody sees them wait, but for one.
    auto first = waiting(other);
    REQUIRE(eventually([&] { return marked(database); }));
    const Stopwatch time;
    lock->release();
    for (auto& wait : waits) CHECK(wait.get());
    CHECK(first.get());
    CHECK(time.elapsed() < between_looks * 9 / 10);
  }
  // A crowd delays some of them, not most.
  std::vector<std::chrono::microseconds> took;
  for (int round = 0; round < 9; ++round) {
    auto lock = engine.lock("job");
    database.admin().run("UPDATE resource_lock SET wanted_until = 0 WHERE name = 'job'");
    auto wait = waiting(other);
    REQUIRE(eventually([&] { return marked(database); }, 3min));
    const Stopwatch time;
    lock.release();
    CHECK(wait.get());
    took.push_back(time.elapsed());
  }
  std::ranges::nth_element(took, took.begin() + 4);
  CHECK(took[4] < 100ms * std::min(slowness(), 3));
}

TEST_CASE("a waiter that hears nothing gets the lock when it looks") {
  Database database;
  auto holder = database.engine(), waiter = database.engine({.listen = false});
  auto lock = holder.try_lock("job");
  REQUIRE(lock);
  auto wait = waiting(waiter);
  CHECK(wait.wait_for(300ms) == std::future_status::timeout);
  CHECK_FALSE(marked(database));
  lock->release();
  const Stopwatch time;
  CHECK(wait.get());
  CHECK(time.elapsed() < 10s * slowness());
}

TEST_CASE("the end of a lease wakes a waiter that hears nothing and looks at nothing") {
  Database database;
  auto holder = database.engine(), waiter = database.engine(looking_every(1h));
  auto lock = holder.try_lock("job", {.lease = 1500ms, .renew = false});
  REQUIRE(lock);
  lock->detach();
  const Stopwatch time;
  CHECK(waiting(waiter).get());
  CHECK(time.elapsed() < 20s * slowness());
}

TEST_CASE("to wait for a free lock is to wake at its release, too") {
  Database database;
  auto holder = database.engine(), watcher = database.engine();
  auto lock = holder.try_lock("job");
  REQUIRE(lock);
  auto wait = std::async(std::launch::async, [&] { return watcher.wait_free("job", 4min); });
  REQUIRE(eventually([&] { return marked(database); }));
  CHECK(wait.wait_for(50ms) == std::future_status::timeout);
  lock->release();
  CHECK(wait.get());
  CHECK(database.admin().held() == 0);
}

TEST_CASE("who sleeps for long marks the name anew before its mark is over") {
  for (const bool observes : {false, true}) {
    INFO("observes: " << observes);
    Database database;
    auto holder = database.engine(), waiter = database.engine(looking_every(1h));
    auto lock = holder.lock("job", {.lease = 1h, .reentrance = Reentrance::none});
    auto wait = std::async(std::launch::async, [&] {
      return observes ? waiter.wait_free("job", far_longer()) : waiter.try_lock_for("job", far_longer()).has_value();
    });
    REQUIRE(eventually([&] { return marked(database); }));
    const auto until = [&] {
      return database.admin().number("SELECT wanted_until FROM resource_lock WHERE name = 'job'");
    };
    const auto first = until();
    CHECK(eventually([&] { return until() > first + 5'000'000; }, 20s * slowness()));
    lock.release();
    CHECK(wait.get());
  }
}

TEST_CASE("who waits behind a lock of its own engine looks when that is not its engine's to release any more") {
  Database database;
  // Hears nothing, and looks at nothing by itself.
  auto rarely = looking_every(1h);
  rarely.listen = false;
  auto engine = database.engine(rarely), other = database.engine();
  auto options = renewed_often();
  options.reentrance = Reentrance::none;
  auto lock = engine.lock("job", options);
  auto wait = waiting(engine);
  REQUIRE(eventually([&] { return engine.stats().waiting["job"] == 1; }));
  CHECK(other.force_release("job", lock.token()));
  CHECK(wait.get());
  CHECK(eventually([&] { return !lock.valid(); }));
}

TEST_CASE("who waits behind a lock of its own engine wakes when that engine frees it by force") {
  for (const auto fairness : {Fairness::barging, Fairness::fifo}) {
    Database database;
    auto options = looking_every(1h);
    options.fairness = fairness;
    auto engine = database.engine(options);
    auto lock = engine.lock("job", {.lease = 1h, .reentrance = Reentrance::none});
    auto wait = waiting(engine);
    REQUIRE(eventually([&] { return engine.stats().waiting["job"] == 1; }));
    std::this_thread::sleep_for(200ms * slowness());  // it sleeps by then; or else it sees the name free
    const Stopwatch time;
    CHECK(engine.force_release("job", lock.token()));
    CHECK(wait.get());
    CHECK(time.elapsed() < before_mark_is_renewed);
  }
}

TEST_CASE("who waits behind a lock of its own engine that is detached hears of its end wherever it is adopted") {
  Database database;
  auto engine = database.engine(looking_every(1h)), other = database.engine();
  auto lock = engine.lock("job", {.lease = 1h, .reentrance = Reentrance::none});
  auto wait = waiting(engine);
  REQUIRE(eventually([&] { return engine.stats().waiting["job"] == 1; }));
  const auto grant = lock.detach();
  CHECK(eventually([&] { return marked(database); }, 20s * slowness()));
  auto adopted = other.adopt("job", grant);
  REQUIRE(adopted);
  adopted->release();
  CHECK(wait.get());
}
