// What goes wrong between an engine and its server is counted: retries by cause, reconnects, and renewals that are
// late.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include "types/clock.hpp"

#include <doctest/doctest.h>

#include <future>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a connection that breaks under a request is a retry because of that, and a reconnect") {
  ServerDatabase database;
  Proxy proxy(database.server());
  Engine engine(database.server().url_at(proxy.address()),
                {.connections = 1, .timeouts = {.request = 1min, .release = 1min}});
  engine.try_lock("job").reset();
  CHECK(engine.stats().reconnected == 0);
  proxy.lose_next_answer();
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  CHECK(proxy.lost_it());
  const auto stats = engine.stats();
  CHECK(stats.retried.at(RetryCause::disconnected) == 1);
  CHECK(stats.reconnected == 1);
  CHECK(stats.granted() == 2);
  CHECK(stats.leases == 1);
  EventLog news;
  const auto observer = engine.observe(news.observer());  // hears of reconnects although it came late
  proxy.lose_next_answer();
  CHECK(lock->release() == Released::freed);
  CHECK(news.comes(Event::Kind::reconnected));
  CHECK(engine.stats().reconnected == 2);
  CHECK(engine.stats().leases == 0);
}

TEST_CASE("a server that ends a statement to break a deadlock is another cause") {
  ServerDatabase database;
  auto engine = database->engine({.timeouts = {.request = 1min}});
  engine.try_lock("job").reset();
  database.server().fail_writes(ServerTestDatabase::Mishap::deadlock);
  auto asked = std::async(std::launch::async, [&] { return engine.try_lock("job").has_value(); });
  CHECK(eventually([&] { return engine.stats().retried.at(RetryCause::deadlock) > 0; }));
  database.server().fail_no_more();
  CHECK(asked.get());
}

TEST_CASE("a lease that is renewed long after it was due is told and counted, and is not lost") {
  ServerDatabase database;
  Proxy proxy(database.server());
  EventLog news;
  Engine engine(database.server().url_at(proxy.address()),
                {.timeouts = {.connect = 1s * slowness(), .request = 1s * slowness()}});
  const auto observer = engine.observe(news.observer());
  const Duration lease = 1min * slowness();
  const auto lock = engine.try_lock("job", {.lease = lease, .renew_every = 200ms});
  REQUIRE(lock);
  CHECK(eventually([&] { return engine.stats().renewals > 0; }));
  CHECK(engine.stats().renewed_late == 0);
  proxy.refuse();
  CHECK(eventually([&] {
    return engine.stats().retried.at(RetryCause::refused) > 0 ||
           engine.stats().retried.at(RetryCause::disconnected) > 0;
  }));
  BootClock::ahead += std::chrono::nanoseconds{lease / 2}.count();  // as if all of that time had passed in vain
  proxy.pass();
  CHECK(news.comes(Event::Kind::renewed_late));
  CHECK(news.of(Event::Kind::renewed_late).at(0).name == "job");
  CHECK(news.of(Event::Kind::renewed_late).at(0).took >= lease / 2);
  CHECK(engine.stats().renewed_late == 1);
  CHECK(lock->valid());
  BootClock::ahead = 0;
}
