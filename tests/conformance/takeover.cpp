// The promise that an expired lease can be taken over, once.
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("an expired lease is taken over by the next acquire, under the next token") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  auto gone = engine.try_lock("job", {.renew = false});
  REQUIRE(gone);
  const auto before = gone->detach().token;
  CHECK_FALSE(engine.try_lock("job"));
  database.admin().expire("job");
  const auto lock = engine.try_lock("job");
  REQUIRE(lock);
  CHECK(number(lock->token()) == number(before) + 1);
  CHECK(database.admin().owner("job") == lock->owner());
}

TEST_CASE("a lease ends by itself, not before its time") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  auto other = database.engine({.polling = {.longest = 20ms}});
  const Stopwatch since_before_the_grant;
  auto gone = engine.try_lock("job", {.lease = 300ms, .renew = false});
  REQUIRE(gone);
  gone->detach();
  const auto lock = other.try_lock_for("job", 2min);
  CHECK(lock.has_value());
  CHECK(since_before_the_grant.elapsed() >= 299ms);  // 1 ms: the step of the coarsest clock
}

TEST_CASE("of sixteen that race for an expired lease exactly one wins") {
  Database database;
  std::vector<Engine> engines;
  for (int i = 0; i < 4; ++i) engines.push_back(database.engine({.connections = 4}));
  for (int round = 0; round < 10; ++round) {
    auto gone = engines[0].try_lock("job", {.renew = false});
    REQUIRE(gone);
    const auto before = gone->detach().token;
    database.admin().expire("job");
    std::vector<std::optional<Lock>> locks(16);
    in_parallel(16, [&](int i) {
      locks[static_cast<std::size_t>(i)] = engines[static_cast<std::size_t>(i % 4)].try_lock("job");
    });
    REQUIRE(std::count_if(locks.begin(), locks.end(), [](const auto& lock) { return lock.has_value(); }) == 1);
    const auto winner = std::find_if(locks.begin(), locks.end(), [](const auto& lock) { return lock.has_value(); });
    CHECK(number((*winner)->token()) == number(before) + 1);
  }
}
