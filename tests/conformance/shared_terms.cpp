// The promises of a lease as those have it who share a name: it is over in time (max_hold), or ended by a release alone
// (until_released), and nobody trusts it for longer than it lasts.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// Who has a share of a name of its own, and who is kept out by that.
struct Share {
  std::string name;
  LockOptions mine, kept_out;
};

std::vector<Share> shares() {
  const LockOptions permit{.mode = Mode::permits, .permits = 2, .limit = 3};
  return {{"read", {.mode = Mode::shared}, {}}, {"slots", permit, permit}};
}

// Somebody beside it, whose own share keeps nobody out who is kept out by it.
LockOptions beside() { return {.mode = Mode::permits, .limit = 3, .lease = 1h}; }

long long column(Database& database, const std::string& column, const Lock& lock) {
  return database.admin().number("SELECT " + column + " FROM resource_lock_holder WHERE owner = '" + lock.owner() +
                                 "'");
}

std::optional<Duration> left_of(Engine& engine, const Lock& lock) {
  for (const auto& sharer : engine.sharers(lock.name()))
    if (sharer.owner == lock.owner()) return sharer.left;
  return std::nullopt;
}

}  // namespace

TEST_CASE("the lease of who shares a name is renewed, and over at most max_hold after its grant, and others come in") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  auto other = database.engine({.reentrance = Reentrance::none, .polling = {.longest = 50ms}});
  const auto lease = 1500ms * slowness(), most = 3000ms * slowness();
  const auto stays = other.try_lock("slots", beside());
  REQUIRE(stays);
  struct OwnLock {
    Share share;
    Lock lock;
    Duration granted{}, last{};
  };
  std::vector<OwnLock> all;
  for (auto& share : shares()) {
    auto options = share.mine;
    options.lease = lease, options.max_hold = most, options.renew_every = 50ms;
    auto lock = engine.try_lock(share.name, options);
    REQUIRE(lock);
    all.push_back({share, std::move(*lock)});
    all.back().granted = Duration{column(database, "acquired_at", all.back().lock)};
  }
  CHECK(eventually([&] {
    for (auto& one : all) one.last = std::max(one.last, Duration{column(database, "expires_at", one.lock)});
    return std::all_of(all.begin(), all.end(), [](const OwnLock& one) { return one.lock.loss().has_value(); });
  }));
  for (auto& one : all) {
    INFO(one.share.name);
    CHECK(one.last > one.granted + lease);
    CHECK(one.last <= one.granted + most);
    CHECK(one.lock.loss() == Loss::max_hold);
    CHECK_FALSE(one.lock.valid());
    CHECK(eventually([&] { return one.lock.lost().stop_requested(); }));
    CHECK(thrown_by([&] { one.lock.check(); }).names("max_hold"));
    const auto next = other.try_lock_for(one.share.name, far_longer(), one.share.kept_out);
    REQUIRE(next);
    const bool alone = one.share.kept_out.mode == Mode::exclusive;
    const auto come =
        alone ? database.admin().acquired_at(one.share.name) : Duration{column(database, "acquired_at", *next)};
    CHECK(come >= one.granted + lease);
    CHECK(come < one.granted + most + 2s * slowness());
    CHECK(one.lock.release() == Released::was_lost);
    CHECK(next->valid());
  }
  CHECK(stays->valid());
}

TEST_CASE("who shares a name until it is released holds it through a year of silence, and is no prey of the reaper") {
  for (const auto& share : shares()) {
    INFO(share.name);
    Database database;
    auto engine = database.engine({.reentrance = Reentrance::none}), other = database.engine();
    auto options = share.mine;
    options.lease = until_released;
    const auto grant = engine.lock(share.name, options).detach();
    database.admin().age(share.name, 24h * 365);
    CHECK_FALSE(other.try_lock(share.name, share.kept_out));
    CHECK(other.reap().abandoned == 0);
    CHECK_FALSE(other.try_lock(share.name, share.kept_out));
    const auto rows = other.sharers(share.name);
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].owner == grant.owner);
    CHECK(rows[0].held >= 24h * 365);
    CHECK(rows[0].left > 24h * 365);
    auto adopted = engine.adopt(share.name, grant);
    REQUIRE(adopted);
    CHECK(adopted->remaining() > 24h * 365);
    CHECK(adopted->release() == Released::freed);
    CHECK(other.try_lock(share.name, share.kept_out));
  }
}

TEST_CASE("who shares a name until it is released hears that it was released by force") {
  for (const auto& share : shares()) {
    INFO(share.name);
    Database database;
    auto engine = database.engine({.reentrance = Reentrance::none}), other = database.engine();
    auto options = share.mine;
    options.lease = until_released, options.renew_every = 100ms;
    auto lock = engine.lock(share.name, options);
    CHECK(other.force_release(share.name, other.inspect(share.name)->token));
    CHECK(eventually([&] { return lock.lost().stop_requested(); }));
    CHECK((lock.loss() == Loss::forced || lock.loss() == Loss::refused));
    CHECK_FALSE(lock.valid());
  }
}

TEST_CASE("however the lease of who shares a name is extended up and down, trust ends before its row does") {
  std::minstd_rand random(4711);
  constexpr std::array<Duration, 6> lengths{350ms, 700ms, 2s, 10s, 10min, 1h};
  for (const auto& share : shares()) {
    INFO(share.name);
    Database database;
    auto engine = database.engine({.reentrance = Reentrance::none}), looks = database.engine();
    const auto stays = share.mine.mode == Mode::permits ? looks.try_lock(share.name, beside()) : std::nullopt;
    auto options = share.mine;
    options.lease = 2s * slowness();
    auto lock = engine.try_lock(share.name, options);
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
      for (int look = 0; look < 3; ++look) {
        const Stopwatch time;
        const auto trusted = lock->remaining();
        if (trusted == Duration{}) continue;
        ++looked;
        const auto lasts = left_of(looks, *lock).value_or(Duration{});  // read before the clock is
        CHECK(trusted <= lasts + time.elapsed() + 1ms);                 // a clock's step
      }
    }
    CHECK(looked > 0);
  }
}
