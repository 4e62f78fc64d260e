// The promise that who comes late frees nothing of the next holder's.
#include "support/database.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;

namespace {

// A lease of a holder that does not know yet that it has expired.
std::optional<Lock> expired_lease(Database& database, Engine& engine) {
  auto lock = engine.try_lock("job", {.renew = false});
  database.admin().expire("job");
  return lock;
}

}  // namespace

TEST_CASE("a late release does not free the next holder, and says that it was lost") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  auto late = expired_lease(database, engine);
  REQUIRE(late);
  auto next = engine.try_lock("job", {.lease = std::chrono::hours{1}});
  REQUIRE(next);
  const auto before = database.admin().row("job");
  CHECK(late->release() == Released::was_lost);
  CHECK(database.admin().row("job") == before);
  CHECK(next->release() == Released::freed);
}

TEST_CASE("a late destructor does not free the next holder") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  auto late = expired_lease(database, engine);
  REQUIRE(late);
  const auto next = engine.try_lock("job", {.lease = std::chrono::hours{1}});
  REQUIRE(next);
  const auto before = database.admin().row("job");
  late.reset();
  CHECK(database.admin().row("job") == before);
}

TEST_CASE("a release after the lease, before anybody took it, still frees") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  auto late = expired_lease(database, engine);
  REQUIRE(late);
  CHECK(late->release() == Released::freed);
}

TEST_CASE("a release under another token or of another owner frees nothing") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  const auto table = database.table();
  const auto deadline = later(BootClock::now(), std::chrono::seconds{10});
  const auto lock = engine.try_lock("job", {.lease = std::chrono::hours{1}});
  REQUIRE(lock);
  const auto before = database.admin().row("job");
  const store::LeaseKey wrong[] = {{"job", lock->owner(), Token{number(lock->token()) - 1}},
                                   {"job", lock->owner(), Token{number(lock->token()) + 1}},
                                   {"job", "00000000000000000000000000000000", lock->token()}};
  for (const auto& claim : wrong) CHECK_FALSE(table->release(claim, deadline));
  table->withdraw("job", "00000000000000000000000000000000", deadline);
  CHECK(database.admin().row("job") == before);
}
