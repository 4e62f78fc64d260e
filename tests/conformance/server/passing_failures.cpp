// The promise that deadlocks, serialization failures and lock waits of the engine's own statements
// never reach its caller. The engine waits for no row for long, so the server is made to answer so by a trigger.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <future>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

constexpr ServerTestDatabase::Mishap every_mishap[] = {ServerTestDatabase::Mishap::deadlock,
                                                       ServerTestDatabase::Mishap::serialization,
                                                       ServerTestDatabase::Mishap::lock_wait};

// Lets `call` meet the mishap for a while, and answers what comes of it.
template <class Call>
auto through(ServerTestDatabase& server, ServerTestDatabase::Mishap mishap, Call call) {
  server.fail_writes(mishap);
  auto calling = std::async(std::launch::async, call);
  CHECK(calling.wait_for(100ms) == std::future_status::timeout);  // it does not give up, nor get through
  server.fail_no_more();
  return calling.get();
}

}  // namespace

TEST_CASE("an acquire, an extension and a release that fail in passing are asked again inside the caller's time") {
  ServerDatabase database;
  EventLog news;
  auto engine = database->engine({.timeouts = {.request = 2min}, .observer = news.observer()});
  engine.try_lock("old").reset();
  for (const auto mishap : every_mishap)
    for (const char* name : {"old", "new"}) {
      auto lock = through(database.server(), mishap, [&] { return engine.try_lock_for(name, 2min); });
      REQUIRE(lock);
      through(database.server(), mishap, [&] {
        lock->extend(1h);
        return true;
      });
      CHECK(through(database.server(), mishap, [&] { return lock->release(); }) == Released::freed);
      database->admin().run("DELETE FROM resource_lock WHERE name = 'new'");
    }
  CHECK(news.comes(Event::Kind::retried));
}

TEST_CASE("a renewal that fails in passing is no loss") {
  ServerDatabase database;
  EventLog news;
  auto engine = database->engine({.observer = news.observer()});
  const auto lock = engine.try_lock("job", {.lease = 10min, .renew_every = 100ms});
  REQUIRE(lock);
  for (const auto mishap : every_mishap) {
    const auto seen = news.of(Event::Kind::retried).size();
    database.server().fail_writes(mishap);
    CHECK(eventually([&] { return news.of(Event::Kind::retried).size() > seen + 1; }));
    database.server().fail_no_more();
    const auto end = database->admin().expires_at("job");
    CHECK(eventually([&] { return database->admin().expires_at("job") > end; }));
  }
  CHECK(lock->valid());
  CHECK_FALSE(lock->loss());
}

TEST_CASE("one that does not pass is told when the caller's time is over") {
  ServerDatabase database;
  auto engine = database->engine({.timeouts = {.request = 500ms * slowness()}});
  engine.try_lock("job").reset();
  database.server().fail_writes(ServerTestDatabase::Mishap::deadlock);
  // The last time it is asked may be so late that not even the mishap is heard of any more.
  const bool told = eventually([&] {
    const Stopwatch time;
    const auto thrown = thrown_by([&] { engine.try_lock("job"); });
    // Nor has another connection the time, where the last one still owes an answer.
    CHECK((thrown.fault == Fault::timeout || thrown.fault == Fault::in_doubt || thrown.fault == Fault::unavailable));
    CHECK(time.elapsed() < 500ms * slowness() + 2s * slowness());
    return thrown.fault == Fault::timeout && thrown.names("a mishap");
  });
  CHECK(told);
  CHECK(database->admin().held() == 0);
  database.server().fail_no_more();
}
