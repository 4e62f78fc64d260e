// Promises behind a pooler that lends its connections for one transaction each: nothing that the engine needs stays in
// the sessions that the application is lent, and what is locked is answered as fast as on a connection of one's own.
#include "api/open.hpp"
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/lent_sessions.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <utility>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

LockOptions permits(std::int64_t many, std::int64_t limit) {
  LockOptions options;
  options.mode = Mode::permits;
  options.permits = many;
  options.limit = limit;
  return options;
}

void share(Engine& engine, Engine& other) {
  const auto reader = other.try_lock("read", {.mode = Mode::shared});
  CHECK(reader);
  CHECK_FALSE(engine.try_lock("read"));
  CHECK(engine.try_lock("read", {.mode = Mode::shared}));
  const auto most = engine.try_lock("gpu", permits(2, 3));
  CHECK(most);
  CHECK_FALSE(engine.try_lock("gpu", permits(2, 3)));
  CHECK(engine.try_lock("gpu", permits(1, 3)));
}

void take_over(Engine& engine, Engine& other) {
  auto given = other.try_lock("given", {.lease = 10min});
  REQUIRE(given);
  auto adopted = engine.adopt("given", given->detach());
  REQUIRE(adopted);
  CHECK(adopted->release() == Released::freed);
  const auto stuck = other.try_lock("stuck", {.lease = 10min});
  REQUIRE(stuck);
  CHECK_FALSE(answered([&] { return engine.wait_free("stuck", 300ms); }));
  CHECK(engine.force_release("stuck", stuck->token()));
  CHECK(engine.wait_free("stuck", 1min));
}

void use_everything(ServerDatabase& database, const Address& pooler, Engine& engine) {
  auto other = database->engine();
  engine.try_lock("job").reset();
  auto held = engine.try_lock("held", {.lease = 10min, .metadata = "x"});
  REQUIRE(held);
  CHECK_FALSE(other.try_lock("held"));
  held->extend(20min);
  CHECK(engine.inspect("held").has_value());
  CHECK_FALSE(engine.list("*").empty());
  in_parallel(8, [&](int i) { engine.try_lock("together " + std::to_string(i)).reset(); });
  engine.try_lock("node", {.reentrance = Reentrance::node}).reset();
  // In line, with a ticket, and by a notification or a look.
  const auto in_the_way = other.try_lock("queue", {.lease = 10min});
  auto waits = std::async(std::launch::async, [&] {
    return engine.try_lock_for("queue", 300ms, {.fairness = Fairness::fifo}).has_value();
  });
  CHECK_FALSE(waits.get());
  Caller caller(database.server(), pooler);
  caller.begin(database->test_database().beginnings().front());
  held->fence(caller.native());
  CHECK(engine.try_lock_in(caller.native(), "in a transaction").has_value());
  caller.run("COMMIT");
  int worked = 0;
  held->with_fence(caller.native(), [&] { ++worked; });
  CHECK(worked > 0);
  share(engine, other);
  take_over(engine, other);
  CHECK(engine.reap().removed == 0);
  CHECK(held->release() != Released::was_lost);
}

}  // namespace

TEST_CASE("nothing that the engine does through a pooler stays in the sessions that others are lent") {
  ServerDatabase database;
  const auto pooler = database.server().pooler();
  if (!pooler) return;  // nothing is lent here
  for (const bool prepared : {true, false}) {
    CAPTURE(prepared);
    LentSessions application(database.server(), *pooler);
    const auto before = application.state(database.server());
    Engine engine(database.server().url_at(*pooler),
                  {.timeouts = {.request = 30s, .release = 30s}, .prepared_statements = prepared});
    use_everything(database, *pooler, engine);
    CHECK(application.state(database.server()) == before);
  }
}

TEST_CASE("through a pooler no more is opened or asked again than there are connections, and nothing later on") {
  ServerDatabase database;
  const auto pooler = database.server().pooler();
  if (!pooler) return;
  for (const bool prepared : {true, false}) {
    CAPTURE(prepared);
    Engine engine(database.server().url_at(*pooler),
                  {.timeouts = {.request = 30s, .release = 30s}, .prepared_statements = prepared});
    // At one time, so that no connection is lent the same session every time.
    const auto use = [&] {
      in_parallel(3, [&](int i) {
        const auto name = "job " + std::to_string(i);
        for (int round = 0; round < 20; ++round) {
          auto lock = engine.lock(name, {.lease = 10min});
          lock.extend(20min);
          CHECK(engine.inspect(name).has_value());
          CHECK(lock.release() == Released::freed);
        }
      });
    };
    use();
    const auto first = engine.stats();
    CHECK(first.reconnected <= first.connections.limit);
    CHECK(first.retried.at(RetryCause::stale_statement) <= first.connections.limit);
    use();
    const auto second = engine.stats();
    CHECK(second.reconnected == first.reconnected);
    CHECK(second.retried.at(RetryCause::stale_statement) == first.retried.at(RetryCause::stale_statement));
  }
}

TEST_CASE("a row that is locked elsewhere is busy through a pooler as fast as without one") {
  ServerDatabase database;
  const auto pooler = database.server().pooler();
  if (!pooler) return;
  for (const bool prepared : {true, false}) {
    CAPTURE(prepared);
    Engine engine(database.server().url_at(*pooler), {.timeouts = {.request = 5min}, .prepared_statements = prepared});
    engine.try_lock("job").reset();
    database->admin().block("job");
    const Stopwatch time;
    CHECK_FALSE(engine.try_lock("job"));
    CHECK(time.elapsed() < 2s * slowness());
    CHECK_FALSE(engine.try_lock_for("job", 200ms));
    CHECK(time.elapsed() < 4s * slowness());
    database->admin().unblock();
    CHECK(eventually([&] { return engine.try_lock("job").has_value(); }));
  }
}

TEST_CASE("through a pooler one holds at a time, and a waiter gets what is released") {
  ServerDatabase database;
  const auto pooler = database.server().pooler();
  if (!pooler) return;
  Engine engine(database.server().url_at(*pooler), {.timeouts = {.request = 30s}});
  Engine other(database.server().url_at(*pooler), {.timeouts = {.request = 30s}});
  std::atomic<int> inside{0}, most{0};
  in_parallel(6, [&](int i) {
    for (int round = 0; round < 5; ++round) {
      const auto lock = (i % 2 == 0 ? engine : other).lock("job", {.lease = 10min});
      most = std::max(most.load(), ++inside);
      --inside;
    }
  });
  CHECK(most == 1);
}

TEST_CASE(
    "a pooler that is not recognised is found out by what is gone of that which was prepared, or there already: that "
    "is "
    "told once, and nothing is prepared from then on") {
  for (const auto& [surprise, words] : {std::pair(&ServerTestDatabase::forget_prepared, "does not exist"),
                                        std::pair(&ServerTestDatabase::take_prepared_names, "already exists")}) {
    CAPTURE(words);
    ServerDatabase database;
    if (!(database.server().*surprise)()) return;
    EventLog news;
    auto engine = database->engine({.observer = news.observer()});
    for (int round = 0; round < 20; ++round) {
      auto lock = engine.try_lock("job");
      REQUIRE(lock);
      CHECK(lock->release() == Released::freed);
      CHECK(engine.inspect("job").has_value());
    }
    const auto told = news.of(Event::Kind::retried);
    REQUIRE(told.size() == 1);
    CHECK_MESSAGE(told.front().text.find(words) != std::string::npos, told.front().text);
    CHECK(told.front().text.find("prepared=off") != std::string::npos);
  }
}

TEST_CASE("what one connection has found out of a pooler, those that were open before need not find out as well") {
  ServerDatabase database;
  if (!database.server().forget_prepared()) return;
  const auto at = api::resolve(database->url(), {});
  const Deadline soon(later(BootClock::now(), 5min));
  dialects::Statement ask;
  ask.sql = "SELECT 4711";
  ask.number = std::numeric_limits<std::uint64_t>::max();
  const auto first = at.connector->connect(soon), second = at.connector->connect(soon);
  for (auto* connection : {first.get(), second.get()}) {
    connection->run(ask, {}, soon);
    connection->script("DEALLOCATE ALL", soon);
  }
  CHECK_THROWS_AS(first->run(ask, {}, soon), Failure);
  CHECK_FALSE(first->usable());
  CHECK_NOTHROW(second->run(ask, {}, soon));
  CHECK(second->usable());
}

TEST_CASE("prepared=off in the URL has nothing prepared") {
  ServerDatabase database;
  if (!database.server().forget_prepared()) return;
  EventLog news;
  Engine engine(database->url() + "?prepared=off", {.timeouts = {.request = 30s}, .observer = news.observer()});
  for (int round = 0; round < 3; ++round) engine.try_lock("job").reset();
  CHECK_FALSE(news.has(Event::Kind::retried));
}
