// The promise that a request to stop, and a time that is over, wait for no statement that hangs; and that what was
// granted behind the caller's back is given back.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <optional>
#include <stop_token>
#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// Far below every timeout of an engine, and far above what a thread needs to wake up.
std::chrono::milliseconds at_once() { return 2s * slowness(); }

// Who waits for a statement that hangs waits for much longer than that, however slow the machine is.
std::chrono::milliseconds far_too_long() { return std::max<std::chrono::milliseconds>(20s, 8s * slowness()); }

struct Silent {
  ServerDatabase database{};
  Proxy proxy{database.server()};
  Engine engine{database.server().url_at(proxy.address()), {.timeouts = {.request = far_too_long(), .release = 400ms}}};
};

// Its connection is idle afterwards: it has answered.
void warm(Engine& engine) {
  REQUIRE(eventually([&] { return engine.lock("warm").release() == Released::freed; }));
}

// How long `call` goes on after a stop that is asked for once `hangs` says that it is under way.
template <class Call, class Hangs>
std::chrono::milliseconds after_stop(Call call, Hangs hangs) {
  std::stop_source stop;
  auto ended = std::async(std::launch::async, [&] {
    call(stop.get_token());
    return std::chrono::steady_clock::now();
  });
  CHECK(eventually(hangs));
  const auto asked = std::chrono::steady_clock::now();
  stop.request_stop();
  return std::chrono::duration_cast<std::chrono::milliseconds>(ended.get() - asked);
}

}  // namespace

TEST_CASE("a stop ends a call whose statement hangs at once, and what that was granted is given back") {
  Silent silent;
  warm(silent.engine);
  silent.proxy.swallow_answers();
  const auto before = silent.proxy.requests();
  std::optional<Lock> lock;
  const auto took = after_stop([&](const std::stop_token& stop) { lock = silent.engine.lock(stop, "job"); },
                               [&] { return !silent.database->admin().owner("job").empty(); });
  CHECK(took < at_once());
  CHECK_FALSE(lock);
  CHECK(silent.proxy.requests() > before);
  silent.proxy.cut();
  silent.proxy.pass();
  CHECK(eventually([&] { return silent.database->admin().owner("job").empty(); }));
}

TEST_CASE("a stop ends every kind of wait at once while the database is silent") {
  Silent silent;
  auto holder = silent.database->engine();
  auto lock = holder.lock("job");
  const auto stopped_at_once = [&](auto wait) {
    const auto asked = [&] { return silent.proxy.requests() + silent.proxy.connections(); };
    std::size_t before = 0;
    bool waits = false;
    const auto took = after_stop(wait, [&] {
      if (!waits) {
        waits = silent.database->admin().number(
                    "SELECT count(*) FROM resource_lock WHERE name = 'job' AND wanted_until > 0") > 0;
        if (!waits) return false;
        silent.proxy.swallow_answers();
        before = asked();
      }
      return asked() > before;  // a look, or a connection for it, that nobody answers
    });
    CHECK(took < at_once());
    silent.proxy.cut();
    silent.proxy.pass();
    silent.database->admin().run("UPDATE resource_lock SET wanted_until = 0 WHERE name = 'job'");
  };
  for (const auto fairness : {Fairness::barging, Fairness::fifo})
    stopped_at_once([&](const std::stop_token& stop) {
      CHECK_FALSE(silent.engine.try_lock_for("job", 1h, {.fairness = fairness}, stop));
    });
  stopped_at_once([&](const std::stop_token& stop) { CHECK_FALSE(silent.engine.wait_free("job", 1h, stop)); });
  CHECK(lock.release() == Released::freed);
  // Nobody is left in the queue.
  CHECK(eventually([&] { return holder.waiters("*").empty(); }));
}

TEST_CASE("whoever waits for a name to be free is never left in doubt: it takes nothing") {
  Silent silent;
  auto holder = silent.database->engine();
  auto lock = holder.lock("job");
  auto wait = std::async(std::launch::async, [&] {
    return thrown_by([&] { static_cast<void>(silent.engine.wait_free("job", 3s)); }).fault;
  });
  const auto marked = [&] {
    return silent.database->admin().number(
               "SELECT count(*) FROM resource_lock WHERE name = 'job' AND wanted_until > 0") > 0;
  };
  CHECK(eventually(marked));
  silent.proxy.swallow_answers();
  const auto fault = wait.get();
  silent.proxy.cut();
  silent.proxy.pass();
  CHECK((fault == Fault::timeout || fault == Fault::unavailable));
}

TEST_CASE("a stop ends a removal while the database is silent, and it has removed nothing") {
  Silent silent;
  warm(silent.engine);
  silent.proxy.swallow_answers();
  const auto before = silent.proxy.requests();
  const auto took = after_stop(
      [&](const std::stop_token& stop) { CHECK(silent.engine.remove("warm", nullptr, stop) == Removal::stopped); },
      [&] { return silent.proxy.requests() > before; });
  CHECK(took < at_once());
  CHECK(silent.database->admin().exists("warm"));
}

TEST_CASE("a stop ends the wait for a connection of the pool at once") {
  Silent silent;
  Engine engine(silent.database.server().url_at(silent.proxy.address()),
                {.connections = 1, .timeouts = {.request = far_too_long()}});
  warm(engine);
  silent.proxy.swallow_answers();
  const auto before = silent.proxy.requests();
  std::stop_source end;
  auto first = std::async(std::launch::async, [&] { return engine.lock(end.get_token(), "first").has_value(); });
  REQUIRE(eventually([&] { return silent.proxy.requests() > before; }));  // it has the only connection
  for (int i = 0; i < 2; ++i) {
    const auto took = after_stop([&](const std::stop_token& stop) { CHECK_FALSE(engine.lock(stop, "second")); },
                                 [&] { return first.wait_for(100ms) == std::future_status::timeout; });
    CHECK(took < at_once());
  }
  end.request_stop();
  CHECK_FALSE(first.get());
  silent.proxy.cut();
  silent.proxy.pass();
  CHECK(eventually([&] { return silent.database->admin().held() == 0; }));
}

TEST_CASE("a release and a destructor end with release_timeout while the database is silent") {
  Silent silent;
  auto released = silent.engine.lock("released");
  std::optional<Lock> destroyed = silent.engine.try_lock("destroyed");
  REQUIRE(destroyed);
  silent.proxy.black_hole();
  const Stopwatch release;
  CHECK(released.release() == Released::unconfirmed);
  CHECK(release.elapsed() >= 400ms);
  CHECK(release.elapsed() < 400ms + 2s * slowness());
  const Stopwatch end;
  destroyed.reset();
  CHECK(end.elapsed() < 400ms + 2s * slowness());
  silent.proxy.cut();
  silent.proxy.pass();
  CHECK(eventually([&] { return silent.database->admin().held() == 0; }));
}

TEST_CASE("a connection that has died in silence while it was idle costs time, and no doubt") {
  Silent silent;
  Engine engine(silent.database.server().url_at(silent.proxy.address()),
                {.timeouts = {.request = 2s * slowness(), .release = 2s * slowness()}});
  auto lock = engine.lock("held", {.lease = 1h, .renew = false});
  silent.proxy.stall();
  const Stopwatch time;
  const auto other = engine.try_lock("job");
  CHECK(other.has_value());
  CHECK(time.elapsed() < 2s * slowness());
  silent.proxy.stall();
  CHECK(engine.inspect("job").has_value());
  silent.proxy.stall();
  CHECK(lock.release() == Released::freed);
}
