// Tests that a request which hangs on its way, and takes effect after it was asked again, given up or given back, makes
// nobody lose a lease, trust one for too long, or wait for what nobody holds.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <future>
#include <optional>
#include <stop_token>
#include <utility>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

const auto patience = 400ms * slowness();  // of one attempt
constexpr Duration lease = 10min;

struct Late {
  ServerDatabase database{};
  Proxy proxy{database.server()};
  Engine engine{database.server().url_at(proxy.address()),
                {.reentrance = Reentrance::none, .timeouts = {.request = patience, .release = 10s * slowness()}}};
  Engine other = database->engine({.reentrance = Reentrance::none});

  Late() {
    auto lock = engine.try_lock("warm");  // prepares what is held later
    lock->extend(30s);
    lock->release();
  }

  bool is_free(std::string_view name = "job") { return database->admin().owner(name).empty(); }

  // Lets the request that hangs take effect.
  void arrive() {
    REQUIRE(proxy.holds());
    proxy.let_held_go();
    REQUIRE(eventually([&] { return proxy.held_was_answered(); }));
  }

  // The lock "job", with the first attempt at it still under way.
  Lock take(Duration length = lease) {
    proxy.hold_next_request();
    auto lock = engine.try_lock_for("job", 60s, {.lease = length});
    REQUIRE(lock);
    REQUIRE(proxy.holds());
    return std::move(*lock);
  }

  // Somebody else takes the name and gives it back, so that it remembers another owner.
  void taken_in_between() {
    auto lock = other.try_lock("job");
    REQUIRE(lock);
    REQUIRE(lock->release() == Released::freed);
  }

  Duration left() { return other.inspect("job")->left; }
};

// A waiter gives up while its request is held up, and its engine ends; then the name is free, and the request arrives.
// False: the machine was too slow for it to arrive while the engine waits for it.
bool given_up_and_ended(bool stopped, Mode mode) {
  constexpr auto soon = 200ms;  // an engine that awaits nothing has ended by then; the others wait for a second
  Late late;
  const LockOptions options{.mode = mode, .lease = lease};
  std::optional<Engine> engine(std::in_place, late.database.server().url_at(late.proxy.address()),
                               EngineOptions{.reentrance = Reentrance::none,
                                             .timeouts = {.request = 5s * slowness(), .release = 10s * slowness()}});
  engine->try_lock("warm", options).reset();
  auto lock = late.other.try_lock("job");
  REQUIRE(lock);
  late.proxy.hold_next_request();
  std::stop_source stop;
  auto waiter = std::async(std::launch::async, [&] {
    return stopped ? engine->lock("job", options, stop.get_token()) : engine->try_lock_for("job", patience, options);
  });
  REQUIRE(eventually([&] { return late.proxy.holds(); }));
  stop.request_stop();
  CHECK_FALSE(waiter.get());
  const Stopwatch time;
  auto ending = std::async(std::launch::async, [&] { engine.reset(); });
  static_cast<void>(ending.wait_for(soon));
  CHECK(lock->release() == Released::freed);
  late.arrive();
  const bool in_time = time.elapsed() < 4 * soon;
  ending.get();
  const auto held = late.database->admin().held();
  CHECK((held == 0 || !in_time));
  if (held != 0) late.database->admin().run("UPDATE resource_lock SET owner = NULL WHERE name = 'job'");
  return in_time;
}

}  // namespace

TEST_CASE("an acquire that arrives after its grant was released is refused: what was freed stays free") {
  Late late;
  auto lock = late.take();
  CHECK(lock.release() == Released::freed);
  const auto row = late.database->admin().row("job");
  late.arrive();
  CHECK(late.database->admin().row("job") == row);
  CHECK(late.other.try_lock("job"));
}

TEST_CASE("an acquire that arrives after a forced release is refused") {
  Late late;
  auto lock = late.take();
  REQUIRE(late.other.force_release("job", lock.token()));
  late.arrive();
  CHECK(late.is_free());
  CHECK(lock.release() == Released::was_lost);
}

TEST_CASE("an acquire that arrives after a transaction lock was over is refused") {
  Late late;
  auto lock = late.take();
  CHECK(lock.release() == Released::freed);
  Caller caller(late.database.server());
  caller.begin(late.database.server().beginnings().front());
  CHECK(late.other.try_lock_in(caller.native(), "job"));
  caller.run("COMMIT");
  late.arrive();
  CHECK(late.is_free());
}

TEST_CASE(
    "an acquire that arrives after its grant and somebody else's were released holds the lock for a moment only") {
  Late late;
  auto lock = late.take();
  CHECK(lock.release() == Released::freed);
  late.taken_in_between();
  late.arrive();
  const Stopwatch time;
  CHECK(late.other.try_lock_for("job", 60s));
  CHECK(time.elapsed() < 20s);
}

TEST_CASE("what a late acquire holds is freed for who asks in the same process") {
  Late late;
  auto lock = late.take();
  CHECK(lock.release() == Released::freed);
  late.taken_in_between();
  late.arrive();
  CHECK(late.engine.try_lock("job"));
}

TEST_CASE("after in_doubt the lock can be taken at once, and the late acquire is refused") {
  for (const bool row : {false, true}) {
    Late late;
    if (row) late.taken_in_between();
    const std::string name = row ? "job" : "new";
    const auto actor = [&] {
      return late.database->admin().text("SELECT coalesce(max(actor), '') FROM resource_lock WHERE name = '" + name +
                                         "'");
    };
    const auto earlier = actor();
    late.proxy.hold_next_request_and_refuse();
    CHECK(thrown_by([&] { static_cast<void>(late.engine.try_lock(name, {.lease = lease})); }).fault == Fault::in_doubt);
    late.proxy.pass();
    // It is withdrawn: the row names who is not to have it.
    CHECK(eventually([&] { return actor() != earlier && late.is_free(name); }));
    const auto before = actor();
    late.arrive();
    CHECK(late.is_free(name));
    CHECK(actor() == before);
    CHECK(late.other.try_lock(name));
  }
}

TEST_CASE("what is granted to a waiter that has given up is freed, though the lock was held when it gave up") {
  Late late;
  auto lock = late.other.try_lock("job");
  REQUIRE(lock);
  late.proxy.hold_next_request();
  CHECK_FALSE(late.engine.try_lock_for("job", 3 * patience, {.lease = lease}));
  CHECK(lock->release() == Released::freed);
  late.arrive();
  const Stopwatch time;
  CHECK(late.other.try_lock_for("job", 60s));
  CHECK(time.elapsed() < 20s);
}

TEST_CASE("what a waiter that has given up may still be granted is freed, though its engine ends before that") {
  for (const bool stopped : {false, true})
    for (const auto mode : {Mode::exclusive, Mode::shared}) {
      CAPTURE(stopped);
      CAPTURE(mode);
      CHECK(eventually([&] { return given_up_and_ended(stopped, mode); }));
    }
}

TEST_CASE("a waiter does not wait for itself: what its late attempt was granted is its own") {
  Late late;
  Engine engine(late.database.server().url_at(late.proxy.address()),
                {.timeouts = {.request = patience}, .polling = {.first = 2s, .longest = 2s}, .listen = false});
  engine.try_lock("warm").reset();
  auto lock = late.other.try_lock("job");
  REQUIRE(lock);
  late.proxy.hold_next_request();
  auto waiter = std::async(std::launch::async, [&] { return engine.try_lock_for("job", 5min, {.lease = lease}); });
  REQUIRE(eventually([&] { return late.proxy.holds(); }));
  const auto asked = late.proxy.requests();
  // It was told that the lock is busy, and has looked.
  REQUIRE(eventually([&] { return late.proxy.requests() >= asked + 2; }));
  CHECK(lock->release() == Released::freed);
  late.arrive();
  const Stopwatch time;
  const auto granted = waiter.get();
  CHECK(time.elapsed() < 60s);
  REQUIRE(granted);
  CHECK(granted->valid());
  CHECK(late.database->admin().owner("job") == granted->owner());
}

TEST_CASE("a late acquire does not make an extended lease shorter, nor change what is told of it") {
  Late late;
  auto lock = late.take(5s * slowness());
  lock.extend(1h);
  const auto end = late.database->admin().expires_at("job");
  late.arrive();
  CHECK(late.database->admin().expires_at("job") >= end);
  CHECK(lock.remaining() <= late.left() + 1s * slowness());
  CHECK(lock.valid());
  CHECK(lock.release() == Released::freed);
}

TEST_CASE("a late extension to less does not make the lease end before its holder's trust") {
  Late late;
  auto lock = late.engine.lock("job", {.lease = lease, .renew = false});
  late.proxy.hold_next_request();
  try {
    lock.extend(2s * slowness());
  } catch (const Error& error) { CHECK(error.fault() == Fault::in_doubt); }
  REQUIRE(late.proxy.holds());
  lock.extend(1h);
  late.arrive();
  CHECK(lock.remaining() > 50min);
  CHECK(late.left() > 50min);
  CHECK_FALSE(late.other.try_lock("job"));
  CHECK(lock.release() == Released::freed);
}

TEST_CASE("a late extension to more gives nobody more trust") {
  Late late;
  auto lock = late.engine.lock("job", {.lease = 1min, .renew = false});
  late.proxy.hold_next_request();
  try {
    lock.extend(1h);
  } catch (const Error& error) { CHECK(error.fault() == Fault::in_doubt); }
  REQUIRE(late.proxy.holds());
  lock.extend(30s);
  late.arrive();
  CHECK(lock.remaining() <= 30s);
  CHECK(lock.release() == Released::freed);
}

TEST_CASE("a late renewal does not make an extended lease shorter") {
  Late late;
  auto lock = late.engine.lock("job", {.lease = 3s * slowness()});
  late.proxy.hold_next_request();
  REQUIRE(eventually([&] { return late.proxy.holds(); }));
  lock.extend(1h);
  late.arrive();
  CHECK(late.left() > 50min);
  CHECK(lock.valid());
  CHECK(lock.release() == Released::freed);
}

TEST_CASE("a late release frees nothing of who came after") {
  Late late;
  auto lock = late.engine.lock("job", {.lease = lease});
  late.proxy.hold_next_request();
  const auto released = lock.release();
  CHECK((released == Released::unconfirmed || released == Released::freed));
  REQUIRE(late.proxy.holds());
  auto next = late.other.try_lock_for("job", 60s);
  REQUIRE(next);
  const auto row = late.database->admin().row("job");
  late.arrive();
  CHECK(late.database->admin().row("job") == row);
  CHECK(next->release() == Released::freed);
}
