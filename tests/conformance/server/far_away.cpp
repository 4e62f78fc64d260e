// Promises that hold however far away the database is, up to 150 ms there and back: who waits keeps its connections, is
// woken, and a short lease is kept.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <future>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::milliseconds round_trips[] = {0ms, 60ms, 120ms, 150ms};

// Two to ask, and one to listen. On a busy machine an answer comes too late now and then anyway, which costs one more.
bool few_connections(const Proxy& proxy) { return static_cast<int>(proxy.connections()) <= 2 + slowness(); }

// An engine that is this far away from the database. What is measured of the way is measured by the engine itself.
struct FarAway {
  FarAway(ServerDatabase& database, std::chrono::milliseconds round_trip, EngineOptions options = {})
      : proxy(database.server()) {
    if (round_trip > 0ms) proxy.delay(round_trip / 2);
    options.timeouts.release *= slowness();  // what is not released in time would be left behind
    engine.emplace(database.server().url_at(proxy.address()), std::move(options));
  }
  Proxy proxy;
  std::optional<Engine> engine{};
};

long long marked_for(Admin& admin, const std::string& name) {
  return admin.number("SELECT wanted_until - expires_at FROM resource_lock WHERE name = '" + name + "'");
}

}  // namespace

TEST_CASE("who waits far away marks the name, and needs no new connections for it") {
  ServerDatabase database;
  auto holder = database->engine();
  for (const auto round_trip : round_trips) {
    CAPTURE(round_trip.count());
    FarAway far(database, round_trip, {.polling = {.first = 50ms, .longest = 200ms}});
    const auto lock = holder.try_lock("job", {.lease = 1h});
    REQUIRE(lock);
    CHECK(marked_for(database->admin(), "job") < 0);
    const auto wait = 4s * slowness();
    auto waits = std::async(std::launch::async, [&] { return far.engine->try_lock_for("job", wait).has_value(); });
    CHECK(eventually(
        [&] { return database->admin().number("SELECT wanted_until FROM resource_lock WHERE name = 'job'") > 0; },
        wait));
    // Some more looks, with all that belongs to them.
    const auto looked = far.proxy.requests();
    CHECK(eventually([&] { return far.proxy.requests() > looked + 8; }, wait));
    CHECK_FALSE(waits.get());
    CHECK_MESSAGE(few_connections(far.proxy), far.proxy.connections());
    database->admin().run("UPDATE resource_lock SET wanted_until = 0");
  }
}

TEST_CASE("a release is heard far away in a few round trips") {
  ServerDatabase database;
  for (const auto round_trip : round_trips) {
    CAPTURE(round_trip.count());
    auto holder = database->engine();
    FarAway far(database, round_trip, {.polling = {.first = 5s, .longest = 5s}});
    auto best = std::chrono::microseconds::max();
    // The first times listeners and those who notify have to find each other, and a machine is slow now and then.
    const bool soon = eventually([&] {
      auto lock = holder.try_lock("job", {.lease = 1h});
      if (!lock) return false;
      auto waits = std::async(std::launch::async, [&] { return far.engine->try_lock_for("job", 20s); });
      // It waits: the name is marked, and nothing is asked any more.
      const bool marked = eventually(
          [&] { return database->admin().number("SELECT wanted_until FROM resource_lock WHERE name = 'job'") > 0; });
      if (!marked) return false;
      std::size_t before = 0, now = far.proxy.requests();
      do {
        before = now;
        std::this_thread::sleep_for(2 * round_trip + 150ms);
        now = far.proxy.requests();
      } while (now != before);
      lock.reset();
      const Stopwatch time;
      const auto granted = waits.get();
      best = std::min(best, time.elapsed());
      database->admin().run("UPDATE resource_lock SET wanted_until = 0");
      return granted && best < 4 * round_trip + 100ms * slowness();
    });
    CHECK_MESSAGE(soon, best.count() << " us at best");
  }
}

TEST_CASE("a lease of half a second is kept far away, also while its engine is busy with something else") {
  ServerDatabase database;
  for (const auto round_trip : round_trips) {
    CAPTURE(round_trip.count());
    // Each time it is renewed about twelve times. On a busy machine one of them may come too late, but not each time.
    CHECK(eventually([&] {
      FarAway far(database, round_trip);
      far.engine->try_lock("warm").reset();
      const auto lock = far.engine->try_lock("job", {.lease = 500ms});
      if (!lock) return false;
      for (const Stopwatch time; time.elapsed() < 2s && lock->valid();) far.engine->try_lock("other").reset();
      return lock->valid() && far.proxy.connections() <= 2;
    }));
  }
}

TEST_CASE("a lease that cannot be kept at this distance is said to be too short when it is granted") {
  ServerDatabase database;
  EventLog news;
  FarAway far(database, 150ms, {.observer = news.observer()});
  const auto too_short = far.engine->try_lock("too short", {.lease = 310ms});
  CHECK(news.comes(Event::Kind::trust_low));
  const auto told = news.of(Event::Kind::trust_low).front();
  CHECK(told.name == "too short");
  CHECK_MESSAGE(told.text.find("310000 us") != std::string::npos, told.text);
  EventLog silent;
  FarAway again(database, 150ms, {.observer = silent.observer()});
  const auto longer = again.engine->try_lock("long enough", {.lease = 2s});
  CHECK(silent.comes(Event::Kind::granted));
  CHECK_FALSE(silent.has(Event::Kind::trust_low));
}

TEST_CASE("a mark whose answer comes too late costs no connection") {
  ServerDatabase database;
  auto holder = database->engine();
  const auto lock = holder.try_lock("job", {.lease = 1h});
  REQUIRE(lock);
  FarAway far(database, 0ms, {.polling = {.first = 100ms, .longest = 400ms}});
  for (int i = 0; i < 8; ++i) far.engine->try_lock("near").reset();  // as far as it knows it is near
  far.proxy.delay(55ms);
  auto waits = std::async(std::launch::async, [&] { return far.engine->try_lock_for("job", 5s).has_value(); });
  CHECK(eventually(
      [&] { return database->admin().number("SELECT wanted_until FROM resource_lock WHERE name = 'job'") > 0; }));
  CHECK_FALSE(waits.get());
  CHECK_MESSAGE(few_connections(far.proxy), far.proxy.connections());
}

TEST_CASE("a distance that changes all the time costs no connections either") {
  ServerDatabase database;
  auto holder = database->engine();
  FarAway far(database, 0ms, {.polling = {.first = 20ms, .longest = 50ms}});
  const auto lock = holder.try_lock("job", {.lease = 1h});
  auto waits = std::async(std::launch::async, [&] { return far.engine->try_lock_for("job", 6s).has_value(); });
  for (int i = 0; waits.wait_for(200ms) == std::future_status::timeout; ++i) far.proxy.delay(i % 2 == 0 ? 75ms : 1ms);
  CHECK_FALSE(waits.get());
  CHECK_MESSAGE(few_connections(far.proxy), far.proxy.connections());
}
