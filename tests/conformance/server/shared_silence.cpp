// The promise that who shares a name, as a reader or by a permit, waits for no server that is silent: each kind of call
// ends in its time, a loss is told in time, and what was granted or freed in the silence is so for nobody else.
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
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

struct Shared {
  std::string name;
  LockOptions mine;
};

std::vector<Shared> shared_modes() {
  return {{"a reader", {.mode = Mode::shared, .lease = 10min}},
          {"a permit", {.mode = Mode::permits, .limit = 2, .lease = 10min}}};
}

const Duration request = 600ms * slowness(), freeing = 400ms * slowness();
// What a call may take beyond its limit.
const Duration too_late = 2s * slowness();

// One that asks through a proxy, and another one that holds the name beside it, in peace.
struct Quiet {
  ServerDatabase database{};
  Proxy proxy{database.server()};
  Shared way;
  Engine engine, other = database->engine({.reentrance = Reentrance::none, .polling = {.longest = 50ms}});
  Lock beside;

  explicit Quiet(Shared chosen, Duration patience = request)
      : way(std::move(chosen)),
        engine(database.server().url_at(proxy.address()),
               {.reentrance = Reentrance::none,
                .connections = 1,
                .timeouts = {.connect = 10s * slowness(), .request = patience, .release = freeing}}),
        beside(other.lock("job", way.mine)) {
    auto warm = engine.lock("warm", way.mine);
    warm.extend(20min);
    warm.release();
  }

  long long holders() {
    return database->admin().number("SELECT count(*) FROM resource_lock_holder WHERE name = 'job' AND token > 0");
  }
  void check_that_only_the_other_is_left() {
    proxy.cut();
    proxy.pass();
    CHECK(eventually([&] { return holders() == 1; }));  // long before its lease
    CHECK(beside.valid());
    CHECK_FALSE(other.try_lock("job"));
    auto next = other.try_lock("job", way.mine);
    REQUIRE(next);
    CHECK(next->release() == Released::freed);
    CHECK(beside.release() == Released::freed);
    CHECK(other.try_lock("job"));
  }
};

}  // namespace

TEST_CASE(
    "asking to share a name ends in its time while the server is silent, and what that was granted is given back") {
  for (const auto& way : shared_modes()) {
    INFO(way.name);
    Quiet quiet(way);
    quiet.proxy.swallow_answers();
    const Stopwatch time;
    CHECK(thrown_by([&] { static_cast<void>(quiet.engine.try_lock("job", way.mine)); }).fault == Fault::in_doubt);
    CHECK(time.elapsed() < request + too_late);
    CHECK(eventually([&] { return quiet.holders() == 2; }));  // it was granted, and nobody else has that place
    quiet.check_that_only_the_other_is_left();
  }
}

TEST_CASE("a stop ends at once what waits to share a name while the server is silent, and nothing is left of it") {
  for (const auto& way : shared_modes()) {
    INFO(way.name);
    Quiet quiet(way, std::max<Duration>(20s, 8s * slowness()));  // who waits for the server waits for that
    quiet.proxy.swallow_answers();
    std::stop_source stop;
    auto asking = std::async(std::launch::async, [&] {
      const bool granted = quiet.engine.lock(stop.get_token(), "job", way.mine).has_value();
      return std::pair(granted, std::chrono::steady_clock::now());
    });
    CHECK(eventually([&] { return quiet.holders() == 2; }));
    const auto asked = std::chrono::steady_clock::now();
    stop.request_stop();
    const auto [granted, ended] = asking.get();
    CHECK_FALSE(granted);
    CHECK(ended - asked < too_late);
    quiet.check_that_only_the_other_is_left();
  }
}

TEST_CASE("an extension and a release of who shares a name end in their time while the server is silent") {
  for (const auto& way : shared_modes()) {
    INFO(way.name);
    Quiet quiet(way);
    std::optional<Lock> lock = quiet.engine.try_lock("job", way.mine), late = quiet.engine.try_lock("late", way.mine);
    REQUIRE((lock && late));
    quiet.proxy.black_hole();
    const Stopwatch extension;
    CHECK(thrown_by([&] { lock->extend(1h); }).fault);
    CHECK(extension.elapsed() < request + too_late);
    CHECK(lock->valid());
    CHECK(lock->remaining() < 10min);
    const Stopwatch release;
    CHECK(lock->release() == Released::unconfirmed);
    CHECK(release.elapsed() < freeing + too_late);
    const Stopwatch destruction;
    late.reset();
    CHECK(destruction.elapsed() < freeing + too_late);
    CHECK(quiet.holders() == 2);
    quiet.check_that_only_the_other_is_left();
    CHECK(eventually([&] { return quiet.database->admin().owner("late").empty(); }));
  }
}

TEST_CASE(
    "who shares a name and cannot renew in a silence trusts no longer than its lease, and is told when that is over") {
  for (const auto& way : shared_modes()) {
    INFO(way.name);
    Quiet quiet(way);
    const auto lease = 2s * slowness();
    auto options = way.mine;
    options.lease = lease;
    auto lock = quiet.engine.try_lock("job", options);
    REQUIRE(lock);
    const Stopwatch time;
    quiet.proxy.black_hole();
    CHECK(eventually([&] { return lock->lost().stop_requested(); }));
    CHECK(time.elapsed() < lease + too_late);
    CHECK(lock->loss() == Loss::unconfirmed);
    CHECK_FALSE(lock->valid());
    // Nobody came in before: its place may still be there, by the database's clock, never for longer than its lease.
    CHECK(quiet.other.try_lock_for("job", far_longer(), way.mine));
    CHECK(time.elapsed() < lease + too_late);
    CHECK(lock->release() == Released::was_lost);
    quiet.proxy.cut();
    quiet.proxy.pass();
    CHECK(quiet.beside.valid());
    CHECK_FALSE(quiet.other.try_lock("job"));
    CHECK(quiet.beside.release() == Released::freed);
    CHECK(quiet.other.try_lock("job"));
  }
}
