// Engine::stats says what the engine has done, in numbers that are right, without a statement.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <latch>
#include <string>
#include <thread>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

std::size_t waiting_for(const Engine& engine, const std::string& name) {
  const auto waiting = engine.stats().waiting;
  const auto found = waiting.find(name);
  return found == waiting.end() ? 0 : found->second;
}

}  // namespace

TEST_CASE("a new engine has done nothing, and says so of every loss and every cause of a retry") {
  Database database;
  const auto stats = database.engine({.connections = 3}).stats();
  CHECK(stats.leases == 0);
  CHECK(stats.waiting.empty());
  CHECK(stats.requests_in_flight == 0);
  CHECK(stats.connections.limit == 3);
  CHECK(stats.connections.open == 1);
  CHECK(stats.connections.in_use == 0);
  CHECK(stats.granted() + stats.adopted + stats.released + stats.busy + stats.timed_out + stats.deadlocks == 0);
  CHECK(stats.renewals + stats.abandoned + stats.reconnected + stats.batches.sent + stats.rounds.count() == 0);
  CHECK(stats.batches.mean_size() == 0);
  CHECK(stats.lost.size() == 4);
  CHECK(stats.retried.size() == 10);
}

TEST_CASE("grants, busy answers, waits in vain and releases are counted, each once") {
  Database database;
  auto holder = database.engine(), engine = database.engine();
  auto held = holder.try_lock("held");
  REQUIRE(held);
  {
    std::vector<Lock> locks;
    for (int i = 0; i < 3; ++i) {
      auto lock = engine.try_lock("n" + std::to_string(i));
      REQUIRE(lock);
      locks.push_back(std::move(*lock));
    }
    const auto again = engine.try_lock("n0");  // an entry of the same grant
    CHECK(engine.stats().leases == 3);
    CHECK_FALSE(engine.try_lock("held"));
    CHECK_FALSE(engine.try_lock("held"));
    CHECK_FALSE(engine.try_lock_for("held", 1s * slowness()));
  }
  const auto stats = engine.stats();
  CHECK(stats.leases == 0);
  CHECK(stats.granted() == 3);
  CHECK(stats.waited.sum > Duration{});
  CHECK(stats.released == 3);
  CHECK(stats.busy == 2);
  CHECK(stats.timed_out == 1);
  CHECK(stats.waiting.empty());
  CHECK(holder.stats().leases == 1);
  CHECK(holder.stats().busy == 0);
}

TEST_CASE("a grant that was waited for is counted with the time of the whole wait, also one that was handed over") {
  Database database;
  auto engine = database.engine();
  std::optional<Lock> held = engine.try_lock("job");
  REQUIRE(held);
  constexpr auto wait = 300ms;
  auto waiter = std::async(std::launch::async, [&] { return engine.try_lock_for("job", 2min).has_value(); });
  CHECK(eventually([&] { return waiting_for(engine, "job") == 1; }));
  std::this_thread::sleep_for(wait);
  held.reset();
  CHECK(waiter.get());
  const auto stats = engine.stats();
  CHECK(stats.granted() == 2);
  CHECK(stats.waited.sum >= wait);
  CHECK(stats.leases == 0);
  CHECK(waiting_for(engine, "job") == 0);
}

TEST_CASE("those who wait are counted by name, whatever they wait in") {
  Database database;
  auto holder = database.engine(), engine = database.engine();
  auto a = holder.try_lock("a"), b = holder.try_lock("b");
  REQUIRE(a);
  REQUIRE(b);
  std::stop_source stop;
  std::vector<std::jthread> waiters;
  for (int i = 0; i < 3; ++i)
    waiters.emplace_back(
        [&] { static_cast<void>(engine.lock(stop.get_token(), "a", {.reentrance = Reentrance::none})); });
  waiters.emplace_back([&] { static_cast<void>(engine.wait_free("b", 2min, stop.get_token())); });
  CHECK(eventually([&] { return waiting_for(engine, "a") == 3 && waiting_for(engine, "b") == 1; }));
  stop.request_stop();
  waiters.clear();
  const auto stats = engine.stats();
  CHECK(stats.waiting.empty());
  CHECK(stats.timed_out + stats.busy == 0);  // they were stopped
}

TEST_CASE(
    "a lease that is lost is held no more, and counted by how; so is one that was found lost when it was released") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  auto lock = engine.try_lock("job", renewed_often());
  REQUIRE(lock);
  CHECK(other.force_release("job", lock->token()));
  CHECK(eventually([&] { return engine.stats().leases == 0; }));
  auto stats = engine.stats();
  CHECK(stats.lost.at(Loss::forced) + stats.lost.at(Loss::refused) == 1);
  CHECK(lock->release() == Released::was_lost);
  auto kept = engine.try_lock("kept", {.renew = false});
  REQUIRE(kept);
  CHECK(other.force_release("kept", kept->token()));
  CHECK(kept->release() == Released::was_lost);
  stats = engine.stats();
  CHECK(stats.leases == 0);
  CHECK(stats.lost.at(Loss::forced) + stats.lost.at(Loss::refused) == 2);
  CHECK(stats.released == 0);
}

TEST_CASE("a lease that is let go of, and adopted by another engine, is counted where it is") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  const auto grant = lock->detach();
  CHECK(engine.stats().leases == 0);
  CHECK(engine.stats().released == 0);
  {
    const auto adopted = other.adopt("job", grant);
    REQUIRE(adopted);
    CHECK(other.stats().leases == 1);
    CHECK(other.stats().adopted == 1);
    CHECK(other.stats().granted() == 0);
  }
  CHECK(other.stats().leases == 0);
  CHECK(other.stats().released == 1);
}

TEST_CASE("renewals and the rounds that they go by are counted") {
  Database database;
  auto engine = database.engine();
  const auto lock = engine.try_lock("job", renewed_often());
  REQUIRE(lock);
  // A round is over a moment after what it has renewed.
  CHECK(eventually([&] { return engine.stats().renewals >= 3 && engine.stats().rounds.count() >= 3; }));
  CHECK(engine.stats().rounds.sum > Duration{});
}

TEST_CASE(
    "where many threads ask through one connection, statements carry several requests, and are counted with them") {
  constexpr int threads = 12, rounds = 20;  // 63: not the default, which the environment may replace
  Database database;
  auto engine = database.engine({.connections = 1, .combine = 63});
  std::atomic<std::uint64_t> asked{0};
  in_parallel(threads, [&](int i) {
    const Stopwatch time;
    // Until some of them have met, which takes its time on a crowded machine.
    for (int n = 0; n < rounds || (engine.stats().batches.sent == 0 && time.elapsed() < 1min); ++n) {
      CHECK(engine.try_lock("n" + std::to_string(i)));
      ++asked;
    }
  });
  const auto stats = engine.stats();
  CHECK(stats.granted() == asked);
  CHECK(stats.released == asked);
  CHECK(stats.leases == 0);
  CHECK(stats.batches.sent > 0);
  CHECK(stats.batches.mean_size() >= 2);
  CHECK(stats.batches.requests <= 2 * asked);
  CHECK(stats.requests_in_flight == 0);
  CHECK(stats.connections.in_use == 0);
}

TEST_CASE("with a request under way there is one in flight, and one connection in use") {
  Database database;
  auto engine = database.engine({.timeouts = {.request = 2min}});
  engine.try_lock("job").reset();
  database.admin().block("job");
  std::jthread asking([&](std::stop_token stop) {
    while (!stop.stop_requested()) static_cast<void>(granted_nothing([&] { return engine.try_lock("job"); }));
  });
  CHECK(eventually([&] {
    const auto stats = engine.stats();  // which waits for nobody meanwhile
    return stats.requests_in_flight == 1 && stats.connections.in_use == 1;
  }));
  asking.request_stop();
  database.admin().unblock();
  asking.join();
  CHECK(engine.stats().requests_in_flight == 0);
}

TEST_CASE(
    "a deadlock is counted and told to the one that it ended, with its label, its job and how long it had waited") {
  Database database;
  EventLog news;
  auto engine = database.engine({.node = "here", .observer = news.observer()});
  std::latch holding(2);
  std::atomic<int> ended{0};
  in_parallel(2, [&](int i) {
    const LockOptions options{.job = "job " + std::to_string(i), .label = "label " + std::to_string(i)};
    auto mine = engine.try_lock(i == 0 ? "a" : "b", options);
    holding.arrive_and_wait();
    REQUIRE(mine);
    const auto thrown = thrown_by([&] { static_cast<void>(engine.try_lock_for(i == 0 ? "b" : "a", 4min, options)); });
    if (thrown.fault == Fault::deadlock) ++ended;
  });
  CHECK(ended == 1);
  CHECK(engine.stats().deadlocks == 1);
  CHECK(news.comes(Event::Kind::deadlock));
  const auto told = news.of(Event::Kind::deadlock).at(0);
  CHECK(told.job.starts_with("job "));
  CHECK(told.label == "label " + told.job.substr(4));
  CHECK(told.node == "here");
  CHECK(told.took > Duration{});
  CHECK(told.text.find("holds \"a\", waits for \"b\"") != std::string::npos);
}

TEST_CASE("busy answers, waits in vain and grants are told with whose they are") {
  Database database;
  EventLog news;
  auto holder = database.engine(),
       engine = database.engine({.node = "here", .label = "the engine's", .observer = news.observer()});
  auto held = holder.try_lock("held");
  REQUIRE(held);
  CHECK_FALSE(engine.try_lock("held"));
  CHECK_FALSE(engine.try_lock_for("held", 1s * slowness(), {.job = "order 1", .label = "the lock's"}));
  engine.try_lock("free", {.job = "order 2"}).reset();
  CHECK(news.comes(Event::Kind::released));
  const auto busy = news.of(Event::Kind::busy), late = news.of(Event::Kind::timed_out),
             granted = news.of(Event::Kind::granted);
  REQUIRE(busy.size() == 1);
  CHECK(busy[0].name == "held");
  CHECK(busy[0].label == "the engine's");
  CHECK(busy[0].node == "here");
  CHECK(busy[0].job.empty());
  REQUIRE(late.size() == 1);
  CHECK(late[0].name == "held");
  CHECK(late[0].label == "the lock's");
  CHECK(late[0].job == "order 1");
  CHECK(late[0].took >= 20ms);
  REQUIRE(granted.size() == 1);
  CHECK(granted[0].job == "order 2");
  CHECK(news.of(Event::Kind::released).at(0).job == "order 2");
}

TEST_CASE("what is busy for a caller's transaction is counted as well") {
  Database database;
  auto engine = database.engine();
  auto held = database.engine().try_lock("held");
  REQUIRE(held);
  Caller caller(database.test_database());
  caller.begin(database.test_database().beginnings().front());
  CHECK_FALSE(engine.try_lock_in(caller.native(), "held"));
  CHECK(engine.stats().busy == 1);
  CHECK_FALSE(engine.try_lock_in(caller.native(), "held", 10ms));
  CHECK(engine.stats().timed_out == 1);
  caller.run("ROLLBACK");
}

TEST_CASE("an engine that was moved from has no statistics, and an empty observer is refused") {
  Database database;
  auto engine = database.engine();
  CHECK(thrown_by([&] { static_cast<void>(engine.observe({})); }).fault == Fault::misuse);
  const auto moved = std::move(engine);
  CHECK(thrown_by([&] { static_cast<void>(engine.stats()); }).fault == Fault::misuse);
}
