// Tests that nobody trusts a lease for longer than its row lasts, whatever lengths it is given one after another.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <random>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// How much longer the row lasts, at the latest of when it was asked for.
Duration left(Engine& engine) {
  const auto row = engine.inspect("job");
  return row && !row->owner.empty() ? row->left : Duration{};
}

// False: it is not trusted any more.
bool check_trust(Lock& lock, Engine& looks) {
  const Stopwatch time;
  const auto trusted = lock.remaining();
  if (trusted == Duration{}) return false;
  const auto lasts = left(looks);
  CHECK(trusted <= lasts + time.elapsed() + 1ms);  // 1 ms: the step of the coarsest clock
  return true;
}

}  // namespace

TEST_CASE("however a lease is extended up and down while it is renewed, trust ends before the row does") {
  Database database;
  auto engine = database.engine();
  auto looks = database.engine();
  std::minstd_rand random(4711);
  constexpr std::array<Duration, 6> lengths{350ms, 700ms, 2s, 10s, 10min, 1h};
  for (const bool entries : {false, true}) {
    INFO("entries: " << entries);
    auto lock =
        engine.try_lock("job", {.lease = 2s * slowness(), .reentrance = entries ? Reentrance::node : Reentrance::none});
    REQUIRE(lock);
    int looked = 0;
    for (int step = 0; step < 60 && lock->valid(); ++step) {
      const auto lease = lengths[random() % lengths.size()] * slowness();
      try {
        lock->extend(lease);
      } catch (const Error& error) {
        CHECK(error.fault() == Fault::lost);  // it was too short for this machine
        break;
      }
      CHECK(lock->remaining() <= lease);
      for (int look = 0; look < 3; ++look) looked += check_trust(*lock, looks) ? 1 : 0;
    }
    CHECK(looked > 0);
    lock.reset();
  }
}

TEST_CASE("a lease that was made shorter is renewed by its new length, and closed for others until it is released") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  auto lock = engine.try_lock("job", {.lease = 1h});
  REQUIRE(lock);
  const auto end = database.admin().expires_at("job");
  lock->extend(1800ms * slowness());
  CHECK(lock->remaining() <= 1800ms * slowness());
  CHECK(engine.inspect("job")->lease == 1800ms * slowness());
  CHECK(database.admin().expires_at("job") >= end);
  Duration least = lock->remaining();
  int rises = 0;
  CHECK(eventually([&] {
    const auto now = lock->remaining();
    if (now > least) ++rises;
    least = now;
    return rises >= 3;
  }));
  CHECK(lock->valid());
  CHECK_FALSE(other.try_lock("job"));
  CHECK(lock->release() == Released::freed);
  CHECK(other.try_lock("job"));
}

TEST_CASE("a lease too short to be renewed lives on once it is extended, for longer than that") {
  Database database;
  auto engine = database.engine();
  const auto lease = 2500ms * slowness();
  std::optional<Lock> lock;
  REQUIRE(eventually([&] {  // it may be over before it is extended
    lock.reset();
    lock = engine.try_lock_for("job", 30s, {.lease = 290ms});
    REQUIRE(lock);
    try {
      lock->extend(lease);
      return true;
    } catch (const Error& error) {
      CHECK(error.fault() == Fault::lost);
      return false;
    }
  }));
  const auto begun = database.admin().acquired_at("job");
  CHECK(eventually([&] { return database.admin().expires_at("job") > begun + 2 * lease; }));
  CHECK(lock->valid());
  CHECK(lock->release() == Released::freed);
}

TEST_CASE("an extension that the pace of renewal does not fit is refused by name, and changes nothing") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("job", {.lease = 1h, .renew_every = 20min});
  REQUIRE(lock);
  const auto row = database.admin().row("job");
  const auto refused = thrown_by([&] { lock->extend(3min); });
  CHECK(refused.fault == Fault::misuse);
  CHECK(refused.names("LockOptions::renew_every 1200000000 us"));
  CHECK(database.admin().row("job") == row);
  CHECK(lock->remaining() > 30min);
  CHECK(lock->release() == Released::freed);
}
