// The promise that a disturbed network is no loss while trust lasts, and a loss when it has run out.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

struct Network {
  ServerDatabase database{};
  Proxy proxy{database.server()};
  EventLog news{};
  Engine engine{database.server().url_at(proxy.address()),
                {.connections = 2,
                 .timeouts = {.connect = 10s * slowness(), .request = 5s * slowness()},
                 .observer = news.observer()}};

  // Waits for a renewal that was made after this call.
  bool renewed() {
    const auto end = database->admin().expires_at("job");
    return eventually([&] { return database->admin().expires_at("job") > end; });
  }
};

}  // namespace

TEST_CASE("connections that are cut again and again are no loss") {
  Network network;
  const auto lock = network.engine.try_lock("job", {.lease = 10min, .renew_every = 50ms});
  REQUIRE(lock);
  for (int i = 0; i < 10; ++i) {
    const auto connections = network.proxy.connections();
    network.proxy.cut();
    CHECK(eventually([&] { return network.proxy.connections() > connections; }));
    CHECK(network.renewed());
  }
  CHECK(lock->valid());
  CHECK_FALSE(lock->loss());
  CHECK(network.news.comes(Event::Kind::reconnected));
  CHECK_FALSE(network.news.has(Event::Kind::lost));
}

TEST_CASE("connections that the server ends are no loss") {
  Network network;
  const auto lock = network.engine.try_lock("job", {.lease = 10min, .renew_every = 50ms});
  REQUIRE(lock);
  for (int i = 0; i < 3; ++i) {
    const auto connections = network.proxy.connections();
    network.database.server().disconnect_everybody();
    CHECK(eventually([&] { return network.proxy.connections() > connections; }));
    CHECK(network.renewed());
  }
  CHECK(lock->valid());
  CHECK_FALSE(lock->loss());
  CHECK_FALSE(network.engine.try_lock("job", {.reentrance = Reentrance::none}));
}

TEST_CASE("a lease whose connections fall silent behind TLS is kept through new ones, and is no loss") {
  const auto server = opener().server_offering(Tls::offered);
  ServerDatabase database(server->test_database());
  Proxy proxy(database.server());
  EventLog news;
  const auto time = 2s * slowness();
  Engine engine(database.server().url_with_tls_at(proxy.address()),
                {.connections = 2,
                 .timeouts = {.connect = 10s * slowness(), .request = time, .release = 5 * time},
                 .observer = news.observer()});
  auto lock = engine.try_lock("job", {.lease = 10min, .renew_every = 50ms});
  REQUIRE(lock);
  for (int i = 0; i < 2; ++i) {
    const auto connections = proxy.connections();
    proxy.stall();
    CHECK(eventually([&] { return proxy.connections() > connections; }));
    const auto end = database->admin().expires_at("job");
    CHECK(eventually([&] { return database->admin().expires_at("job") > end; }));
  }
  CHECK(proxy.sent().find("resource_lock") == std::string::npos);  // all of it was behind TLS
  CHECK(lock->valid());
  CHECK_FALSE(lock->loss());
  CHECK_FALSE(lock->lost().stop_requested());
  CHECK_FALSE(news.has(Event::Kind::lost));
  CHECK(lock->release() == Released::freed);
}

TEST_CASE("a lease whose row a transaction keeps locked does not keep the others from being renewed") {
  Network network;
  auto& admin = network.database->admin();
  const auto blocked = network.engine.try_lock("blocked", {.lease = 10min, .renew_every = 100ms});
  const auto lease = 2s * slowness();
  const auto lock = network.engine.try_lock("job", {.lease = lease, .renew_every = 100ms});
  REQUIRE(blocked);
  REQUIRE(lock);
  const auto begun = admin.acquired_at("job");
  admin.block("blocked");
  CHECK(eventually([&] { return Admin(network.database.server()).expires_at("job") > begun + 3 * lease; }));
  CHECK(lock->valid());
  CHECK(blocked->valid());
  admin.unblock();
}

TEST_CASE("a network that swallows everything is warned of early, and a loss before the lease is over") {
  Network network;
  const auto lease = 3s * slowness();
  const auto lock = network.engine.try_lock("job", {.lease = lease});
  REQUIRE(lock);
  network.proxy.black_hole();
  REQUIRE(network.news.comes(Event::Kind::trust_low));
  CHECK(lock->valid());
  CHECK_FALSE(lock->lost().stop_requested());
  const auto warning = network.news.of(Event::Kind::trust_low).front();
  CHECK(warning.name == "job");
  CHECK(warning.took > Duration{});
  CHECK(warning.took < lease);
  CHECK(eventually([&] { return lock->lost().stop_requested(); }));
  CHECK(lock->loss() == Loss::unconfirmed);
  CHECK_FALSE(lock->valid());
  CHECK(network.news.comes(Event::Kind::lost));
  network.proxy.refuse();
  auto other = network.database->engine();
  free_by_force(other, "job");
}

TEST_CASE("a network that comes back before trust has run out is no loss, and nothing is warned of twice") {
  Network network;
  const auto lease = 4s * slowness();
  const auto lock = network.engine.try_lock("job", {.lease = lease});
  REQUIRE(lock);
  network.proxy.refuse();
  CHECK(eventually([&] { return lock->remaining() < lease / 2; }));
  network.proxy.pass();
  CHECK(eventually([&] { return lock->remaining() > lease * 3 / 4; }));
  CHECK(lock->valid());
  CHECK_FALSE(lock->loss());
  CHECK(network.news.of(Event::Kind::trust_low).size() <= 1);
}

TEST_CASE("a destructor on a dead network takes no longer than its timeout, and the lock is freed once it is back") {
  Network network;
  // Who waits for the request instead waits for a minute.
  Engine engine(network.database.server().url_at(network.proxy.address()),
                {.timeouts = {.request = 1min, .release = 300ms}});
  auto lock = engine.try_lock("job", {.lease = 1h, .renew = false});
  REQUIRE(lock);
  network.proxy.black_hole();
  const Stopwatch time;
  lock.reset();
  CHECK(time.elapsed() < 300ms + 2s * slowness());
  network.proxy.cut();
  network.proxy.pass();
  CHECK(eventually([&] { return network.database->admin().held() == 0; }));
}
