// The promise that a stop, a deadline and the end of an engine abandon what is under way, whatever the server does.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/measured.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <optional>
#include <stop_token>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

// An engine whose server can fall silent, with threads that may hang in it.
struct Rig {
  static inline const auto patience = 10s * slowness();

  ServerDatabase database{};
  Proxy proxy{database.server()};
  Engine engine;

  // More connections than one, so that what the engine does in the background is not in the way.
  explicit Rig(unsigned connections = 4) : engine(open(connections)) {}

  Engine open(unsigned connections) {
    return Engine(database.server().url_at(proxy.address()),
                  {.connections = connections,
                   .timeouts = {.connect = patience, .request = patience, .release = 400ms},
                   .listen = false});
  }

  // A connection that is idle: it has answered, and nothing is tried on over another one.
  void warm() {
    REQUIRE(eventually([&] {
      try {
        auto lock = engine.try_lock("warm");
        return lock && lock->release() == Released::freed;
      } catch (const Error&) { return false; }
    }));
  }
  void speak_again() {
    proxy.cut();
    proxy.pass();
    proxy.cut();  // what was begun in between has lost its beginning
  }
};

// A call that hangs in a thread of its own until it is stopped, or by itself.
struct Hanging {
  std::stop_source stop{};
  std::future<Clock::time_point> ended;

  explicit Hanging(std::function<void(std::stop_token)> call)
      : ended(std::async(std::launch::async, [call = std::move(call), token = stop.get_token()] {
          call(token);
          return Clock::now();
        })) {}

  // How long it goes on.
  std::chrono::microseconds end() {
    const auto asked = Clock::now();
    stop.request_stop();
    return std::chrono::duration_cast<std::chrono::microseconds>(ended.get() - asked);
  }
};

auto lock_of(Engine& engine, const char* name) {
  return [&engine, name](const std::stop_token& stop) { CHECK_FALSE(engine.lock(stop, name)); };
}

}  // namespace

TEST_CASE("a stop ends a call in every state of its request") {
  Rig rig;
  check_prompt("a statement is under way", [&] {
    rig.warm();
    rig.proxy.swallow_answers();
    const auto before = rig.proxy.requests();
    Hanging call(lock_of(rig.engine, "job"));
    REQUIRE(eventually([&] { return rig.proxy.requests() > before; }));
    const auto took = call.end();
    rig.speak_again();
    return took;
  });
  check_prompt("a connection is being made", [&] {
    rig.warm();
    rig.proxy.cut();
    rig.proxy.black_hole();
    const auto before = rig.proxy.connections();
    Hanging call(lock_of(rig.engine, "job"));
    REQUIRE(eventually([&] { return rig.proxy.connections() > before; }));
    const auto took = call.end();
    rig.speak_again();
    return took;
  });
  CHECK(eventually([&] { return rig.database->admin().held() == 0; }));
}

TEST_CASE("a stop ends the wait for a connection, also along with the request of another") {
  Rig rig(1);
  check_prompt("it waits for the pool's connection, or along with another's request", [&] {
    rig.warm();
    rig.proxy.swallow_answers();
    Hanging first(lock_of(rig.engine, "first"));
    REQUIRE(eventually([&] { return rig.engine.stats().requests_in_flight >= 1; }));
    Hanging second(lock_of(rig.engine, "second")), third(lock_of(rig.engine, "third"));
    REQUIRE(eventually([&] { return rig.engine.stats().requests_in_flight >= 3; }));
    const auto took = std::max(third.end(), second.end());
    first.end();
    rig.speak_again();
    return took;
  });
  CHECK(eventually([&] { return rig.database->admin().held() == 0; }));
}

TEST_CASE("a stop ends a wait in line, also while the database is silent") {
  Rig rig;
  auto holder = rig.database->engine();
  const auto held = holder.lock("job", {.lease = 1h});
  const auto waits = [&] { return !rig.engine.stats().waiting.empty(); };
  for (const bool silent : {false, true})
    check_prompt(silent ? "in line, of a silent database" : "in line", [&] {
      rig.warm();
      Hanging call(lock_of(rig.engine, "job"));
      REQUIRE(eventually(waits));
      if (silent) rig.proxy.black_hole();
      const auto took = call.end();
      rig.speak_again();
      return took;
    });
}

TEST_CASE("a stop ends a call whose connection died in silence while it was idle") {
  Rig rig;
  check_prompt("the connection is dead", [&] {
    std::chrono::microseconds took{};
    // Who has found out by then that it is dead is granted the lock over another one: then once more.
    REQUIRE(eventually([&] {
      rig.warm();
      rig.proxy.stall();
      std::atomic<bool> granted{false};
      Hanging call([&](const auto& stop) { granted = rig.engine.lock(stop, "job").has_value(); });
      REQUIRE(eventually([&] { return granted || rig.engine.stats().requests_in_flight > 0; }));
      took = call.end();
      rig.speak_again();
      return !granted;
    }));
    return took;
  });
  CHECK(eventually([&] { return rig.database->admin().held() == 0; }));  // what was granted and not heard
}

TEST_CASE("a try for a time ends with it, whatever its request is at") {
  Rig rig;
  constexpr auto wait = 200ms;
  const auto late = [&] {
    const Stopwatch time;
    try {
      static_cast<void>(rig.engine.try_lock_for("job", wait));
      FAIL("a silent database has answered");
    } catch (const Error& error) {
      // What is silent is no lock that is busy; what was sent may have been granted.
      const auto fault = error.fault();
      CHECK((fault == Fault::timeout || fault == Fault::in_doubt || fault == Fault::unavailable));
    }
    return time.elapsed() - wait;
  };
  check_prompt("200 ms, no answer", [&] {
    rig.warm();
    rig.proxy.swallow_answers();
    const auto took = late();
    rig.speak_again();
    return took;
  });
  check_prompt("200 ms, no connection", [&] {
    rig.warm();
    rig.proxy.cut();
    rig.proxy.black_hole();
    const auto took = late();
    rig.speak_again();
    return took;
  });
  CHECK(eventually([&] { return rig.database->admin().held() == 0; }));
}

TEST_CASE("the end of an engine ends a call that hangs at once, and waits no longer than one request may take") {
  Rig rig;
  constexpr auto request_timeout = 1s;
  std::chrono::microseconds longest{};
  check_prompt("the end of its engine", [&] {
    std::optional<Engine> engine(Engine(rig.database.server().url_at(rig.proxy.address()),
                                        {.timeouts = {.request = request_timeout, .release = 400ms}}));
    rig.proxy.swallow_answers();
    const auto before = rig.proxy.requests();
    Hanging call([&](const auto&) { CHECK_THROWS_AS(static_cast<void>(engine->lock("job")), Error); });
    REQUIRE(eventually([&] { return rig.proxy.requests() > before; }));
    const auto begun = Clock::now();
    engine.reset();
    longest = std::max(longest, std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begun));
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(call.ended.get() - begun);
    rig.speak_again();
    // What it may have been granted, and could not give back, ends with its lease.
    rig.database->admin().run("DELETE FROM resource_lock WHERE name = 'job'");
    return took;
  });
  CHECK(longest < request_timeout + 2s * slowness());
}
