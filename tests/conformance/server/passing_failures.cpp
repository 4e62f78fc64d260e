// This file knows the promise that deadlocks, serialization failures and lock waits of the engine's own statements
// never reach its caller. The engine waits for no row for long, so the server is made to answer so by a trigger.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/news.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

constexpr ServerPlace::Mishap every_mishap[] = {ServerPlace::Mishap::deadlock, ServerPlace::Mishap::serialization,
                                                ServerPlace::Mishap::lock_wait};

}  // namespace

TEST_CASE("an acquire, an extension and a release that fail in passing are asked again inside the caller's time") {
  ServerDatabase database;
  News news;
  auto engine = database->engine({.observer = news.observer()});
  engine.try_lock("old").reset();
  for (const auto mishap : every_mishap)
    for (const char* name : {"old", "new"}) {
      database.server().fail_next_writes(mishap, 2);
      auto lock = engine.try_lock(name);
      REQUIRE(lock);
      database.server().fail_next_writes(mishap, 2);
      lock->extend(1h);
      database.server().fail_next_writes(mishap, 2);
      CHECK(lock->release() == Released::freed);
      database->admin().run("DELETE FROM resource_lock WHERE name = 'new'");
    }
  CHECK(news.comes(Event::Kind::retried));
}

TEST_CASE("a renewal that fails in passing is no loss") {
  ServerDatabase database;
  auto engine = database->engine();
  const auto lock = engine.try_lock("job", {.lease = 6s, .renew_every = 100ms});
  REQUIRE(lock);
  for (const auto mishap : every_mishap) {
    database.server().fail_next_writes(mishap, 2);
    const auto end = database->admin().expires_at("job");
    CHECK(eventually([&] { return database->admin().expires_at("job") > end; }));
  }
  CHECK(lock->valid());
  CHECK_FALSE(lock->loss());
}

TEST_CASE("one that does not pass is told when the caller's time is over") {
  ServerDatabase database;
  auto engine = database->engine({.request_timeout = 500ms});
  engine.try_lock("job").reset();
  database.server().fail_next_writes(ServerPlace::Mishap::deadlock, 1000000);
  const Stopwatch time;
  const auto thrown = thrown_by([&] { engine.try_lock("job"); });
  CHECK(thrown.fault == Fault::timeout);
  CHECK(thrown.names("a mishap"));
  CHECK(time.elapsed() < 500ms + 2s);
  CHECK(database->admin().held() == 0);
}
