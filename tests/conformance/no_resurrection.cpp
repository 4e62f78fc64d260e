// The promise that a renewal brings nothing back that was released, taken over or removed.
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

Deadline soon() { return later(BootClock::now(), 10s); }

store::Renewal renew(store::LockTable& table, const store::LeaseKey& claim) {
  return table.renew({&claim, 1}, soon()).at(0);
}

}  // namespace

TEST_CASE("a renewal of a released lease is refused and leaves the row free") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  const auto table = database.table();
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  const auto owner = lock->owner();
  const store::LeaseKey claim{"job", owner, lock->token(), 30s};
  CHECK(renew(*table, claim) == store::Renewed::yes);
  CHECK(lock->release() == Released::freed);
  database.admin().age("job", 1s);  // so that whatever writes a time writes another one
  const auto before = database.admin().row("job");
  CHECK(renew(*table, claim) == store::Renewed::lost);
  CHECK(table->extend(claim, 30s, {}, soon()) == store::Renewed::lost);
  CHECK(database.admin().row("job") == before);
}

TEST_CASE("a renewal after a takeover is refused and leaves the next holder's lease alone") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  const auto table = database.table();
  auto old = engine.try_lock("job", {.renew = false});
  REQUIRE(old);
  const auto owner = old->owner();
  const store::LeaseKey claim{"job", owner, old->token(), 30s};
  database.admin().expire("job");
  const auto next = engine.try_lock("job", {.renew = false});
  REQUIRE(next);
  database.admin().age("job", 1s);  // so that whatever writes a time writes another one
  const auto before = database.admin().row("job");
  CHECK(renew(*table, claim) == store::Renewed::lost);
  CHECK(table->extend(claim, 30s, {}, soon()) == store::Renewed::lost);
  CHECK(database.admin().row("job") == before);
}

TEST_CASE("a renewal of a removed row does not make a new one") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  const auto table = database.table();
  auto lock = engine.try_lock("job", {.renew = false});
  REQUIRE(lock);
  const auto owner = lock->owner();
  const store::LeaseKey claim{"job", owner, lock->token(), 30s};
  database.admin().run("DELETE FROM resource_lock WHERE name = 'job'");
  CHECK(renew(*table, claim) == store::Renewed::lost);
  CHECK(table->extend(claim, 30s, {}, soon()) == store::Renewed::lost);
  CHECK_FALSE(database.admin().exists("job"));
}

TEST_CASE("an expired lease that nobody took can still be renewed by its holder") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  const auto table = database.table();
  const auto lock = engine.try_lock("job", {.renew = false});
  REQUIRE(lock);
  database.admin().expire("job");
  CHECK(renew(*table, {"job", lock->owner(), lock->token(), 30s}) == store::Renewed::yes);
  CHECK_FALSE(engine.try_lock("job"));
}

TEST_CASE("renewals that race with a release leave the row free") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  const auto table = database.table();
  for (int round = 0; round < 20; ++round) {
    auto lock = engine.try_lock("job", {.renew = false});
    REQUIRE(lock);
    const auto owner = lock->owner();
    const store::LeaseKey claim{"job", owner, lock->token(), 30s};
    in_parallel(2, [&](int i) {
      if (i == 0) {
        CHECK(lock->release() == Released::freed);
      } else {
        while (renew(*table, claim) != store::Renewed::lost) {}
      }
    });
    CHECK(database.admin().held() == 0);
  }
}

TEST_CASE("of a batch of renewals each is answered for itself") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  const auto table = database.table();
  auto held = engine.try_lock("held", {.renew = false});
  auto freed = engine.try_lock("freed", {.renew = false});
  auto taken = engine.try_lock("taken", {.renew = false});
  REQUIRE(held);
  REQUIRE(freed);
  REQUIRE(taken);
  const auto freed_owner = freed->owner();
  const std::vector<store::LeaseKey> claims{{"freed", freed_owner, freed->token(), 30s},
                                            {"held", held->owner(), held->token(), 30s},
                                            {"never was", "0123456789abcdef0123456789abcdef", Token{1}, 30s},
                                            {"taken", taken->owner(), taken->token(), 30s}};
  freed->release();
  database.admin().expire("taken");
  const auto next = engine.try_lock("taken");
  REQUIRE(next);
  using store::Renewed;
  CHECK(table->renew(claims, soon()) ==
        std::vector<store::Renewal>{Renewed::lost, Renewed::yes, Renewed::lost, Renewed::lost});
}
