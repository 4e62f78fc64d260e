// The promise that a wake-up that was lost costs time, and never the lock.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <future>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

struct Waiting {
  ServerDatabase database{};
  Proxy proxy{database.server()};
  Engine holder = database->engine();
  Engine waiter{database.server().url_at(proxy.address()), {.timeouts = {.request = 1s * slowness()}}};

  auto wait() {
    return std::async(std::launch::async, [this] { return waiter.try_lock_for("job", 10min).has_value(); });
  }
  bool marked() {
    return eventually(
        [&] { return database->admin().number("SELECT wanted_until FROM resource_lock WHERE name = 'job'") > 0; });
  }
};

const auto soon_enough = 30s * slowness();

}  // namespace

TEST_CASE("a waiter whose connections the server has ended is granted the lock") {
  Waiting all;
  for (int round = 0; round < 3; ++round) {
    auto lock = all.holder.lock("job");
    auto wait = all.wait();
    REQUIRE(all.marked());
    all.database.server().disconnect_everybody();
    lock.release();
    const Stopwatch time;
    CHECK(wait.get());
    CHECK(time.elapsed() < soon_enough);
  }
}

TEST_CASE("a waiter that the release cannot reach is granted the lock when the network is back") {
  Waiting all;
  auto lock = all.holder.lock("job");
  auto wait = all.wait();
  REQUIRE(all.marked());
  all.proxy.black_hole();
  lock.release();
  CHECK(wait.wait_for(200ms) == std::future_status::timeout);
  all.proxy.cut();  // what was swallowed never comes
  all.proxy.pass();
  const Stopwatch time;
  CHECK(wait.get());
  CHECK(time.elapsed() < soon_enough);
}

TEST_CASE("a waiter is granted the lock although its connections are cut all the time") {
  Waiting all;
  auto lock = all.holder.lock("job");
  auto wait = all.wait();
  REQUIRE(all.marked());
  for (int i = 0; i < 5; ++i) {
    const auto connections = all.proxy.connections();
    all.proxy.cut();
    CHECK(eventually([&] { return all.proxy.connections() > connections; }));
  }
  lock.release();
  const Stopwatch time;
  CHECK(wait.get());
  CHECK(time.elapsed() < soon_enough);
}
