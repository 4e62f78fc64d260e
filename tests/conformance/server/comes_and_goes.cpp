// The promise that an engine lives through a database that is away, goes away and comes back.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <future>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

const auto late = 2s * slowness();

}  // namespace

TEST_CASE("a database that is away when an engine opens is said to be unavailable, in time and by name") {
  ServerDatabase database;
  Proxy proxy(database.server());
  const auto url = database.server().url_at(proxy.address());
  const auto open = [&] {
    const Stopwatch time;
    auto thrown = thrown_by([&] { Engine engine(url, {.timeouts = {.connect = 600ms * slowness()}}); });
    CHECK(time.elapsed() < 600ms * slowness() + late);
    return thrown;
  };
  proxy.refuse();
  const auto refused = open();
  CHECK(refused.fault == Fault::unavailable);
  proxy.black_hole();
  const auto silent = open();
  CHECK((silent.fault == Fault::unavailable || silent.fault == Fault::timeout));
  CHECK_MESSAGE(silent.names("127.0.0.1"), silent.text);
  proxy.pass();
  CHECK(eventually([&] { return !open().fault; }));
}

TEST_CASE("a wait while the database is away does not give up much before its time") {
  ServerDatabase database;
  Proxy proxy(database.server());
  Engine engine(database.server().url_at(proxy.address()));
  engine.try_lock("job").reset();
  proxy.refuse();
  constexpr auto wait = 2s;
  for (int i = 0; i < 3; ++i) {
    const Stopwatch time;
    const auto thrown = thrown_by([&] { static_cast<void>(engine.try_lock_for("job", wait)); });
    CHECK_MESSAGE((thrown.fault == Fault::unavailable || thrown.fault == Fault::in_doubt), thrown.text);
    CHECK(time.elapsed() > wait - 200ms);
    CHECK(time.elapsed() < wait + late);
  }
}

TEST_CASE("nobody listening is unavailable at once") {
  ServerDatabase database;
  const auto free_port = Proxy(database.server()).address();
  const auto thrown = thrown_by([&] { Engine engine(database.server().url_at(free_port)); });
  CHECK(thrown.fault == Fault::unavailable);
  CHECK_MESSAGE(thrown.names(std::to_string(free_port.port)), thrown.text);
}

TEST_CASE("a database that goes away is an error inside the request's time, and works again once it is back") {
  ServerDatabase database;
  Proxy proxy(database.server());
  EventLog news;
  Engine engine(database.server().url_at(proxy.address()),
                {.timeouts = {.connect = 5s * slowness(), .request = 1s * slowness()}, .observer = news.observer()});
  engine.try_lock("job").reset();
  const auto attempt = [&] {
    const Stopwatch time;
    const auto thrown = thrown_by([&] { engine.try_lock("job"); });
    CHECK(time.elapsed() < 1s * slowness() + late);
    return thrown.fault;
  };
  proxy.refuse();
  const auto refused = attempt();
  CHECK((refused == Fault::unavailable || refused == Fault::in_doubt));
  CHECK(attempt() == Fault::unavailable);
  proxy.pass();
  CHECK(eventually([&] { return !attempt(); }));
  for (int i = 0; i < 3; ++i)
    CHECK_FALSE(attempt());  // prepares all that is asked on the way: what is sent now may run
  proxy.black_hole();
  const auto silent = attempt();
  CHECK((silent == Fault::in_doubt || silent == Fault::timeout));
  proxy.cut();
  proxy.pass();
  // What was sent and never answered may still be granted; the engine gives it back, or its owner asks again.
  CHECK(eventually([&] { return engine.try_lock("job").has_value(); }));
  CHECK(news.comes(Event::Kind::reconnected));
  CHECK(eventually([&] { return database->admin().held() == 0; }));
}

TEST_CASE("a waiter waits on through an outage and gets the lock after it") {
  ServerDatabase database;
  Proxy proxy(database.server());
  Engine engine(database.server().url_at(proxy.address()),
                {.timeouts = {.connect = 5s * slowness(), .request = 1s * slowness()}});
  auto holder = database->engine();
  auto lock = holder.try_lock("job");
  REQUIRE(lock);
  auto waiter = std::async(std::launch::async, [&] { return engine.try_lock_for("job", 2min).has_value(); });
  const auto asked = proxy.requests();
  CHECK(eventually([&] { return proxy.requests() > asked + 2; }));
  proxy.refuse();
  lock.reset();
  CHECK(waiter.wait_for(700ms * slowness()) == std::future_status::timeout);
  proxy.pass();
  CHECK(waiter.get());
}

TEST_CASE("a wait ends on its deadline, and on a stop, although the database is away") {
  ServerDatabase database;
  Proxy proxy(database.server());
  Engine engine(database.server().url_at(proxy.address()), {.timeouts = {.connect = 5s * slowness(), .request = 1min}});
  auto holder = database->engine();
  const auto lock = holder.try_lock("job");
  proxy.black_hole();
  const Stopwatch time;
  bool granted = false;
  const auto silent = thrown_by([&] { granted = engine.try_lock_for("job", 400ms).has_value(); });
  CHECK_FALSE(granted);
  CHECK((silent.fault == Fault::timeout || silent.fault == Fault::unavailable || silent.fault == Fault::in_doubt));
  CHECK(time.elapsed() >= 400ms);
  CHECK(time.elapsed() < 400ms + late);
  proxy.refuse();
  std::stop_source stop;
  auto waiter = std::async(std::launch::async, [&] { engine.lock(stop.get_token(), "job"); });
  CHECK(waiter.wait_for(100ms) == std::future_status::timeout);
  const Stopwatch stopping;
  stop.request_stop();
  thrown_by([&] { waiter.get(); });
  CHECK(stopping.elapsed() < late);
}

TEST_CASE("waiting for a connection that another request occupies ends with the request's time") {
  ServerDatabase database;
  Proxy proxy(database.server());
  Engine engine(database.server().url_at(proxy.address()),
                {.connections = 1, .timeouts = {.connect = 5s * slowness(), .request = 1s * slowness()}});
  proxy.black_hole();
  in_parallel(6, [&](int i) {
    const Stopwatch time;
    const auto thrown = thrown_by([&] { engine.try_lock("job " + std::to_string(i)); });
    CHECK(thrown.fault);
    CHECK(time.elapsed() < 1s * slowness() + late);
  });
  proxy.cut();
  proxy.pass();
  CHECK(eventually([&] { return !thrown_by([&] { engine.try_lock("job 0").reset(); }).fault; }));
  CHECK(eventually([&] { return database->admin().held() == 0; }));
}
