// This file knows the promise that a grant can be handed on by its token, and only while it is the current one.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a detached lease stays held, is not renewed, and ends by its time") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("job", renewed_often());
  const auto renewed = engine.try_lock("renewed", renewed_often());
  REQUIRE(lock);
  REQUIRE(renewed);
  const auto token = lock->detach();
  CHECK(token == lock->token());
  lock.reset();
  const auto a_few_renewals = [&] {
    const auto begun = database.admin().expires_at("renewed");
    return eventually([&] { return database.admin().expires_at("renewed") > begun + 200ms; });
  };
  CHECK(a_few_renewals());  // one of both may have been on its way
  const auto row = database.admin().row("job");
  CHECK(a_few_renewals());
  CHECK(database.admin().row("job") == row);
  database.admin().age("job", 9min);
  CHECK_FALSE(engine.try_lock("job"));
  database.admin().age("job", 1min);
  const auto next = engine.try_lock("job");
  REQUIRE(next);
  CHECK(next->token() > token);
}

TEST_CASE("who adopts a lease by its token holds it: renewed, under the same token, until released") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  const auto lease = 1s * slowness();
  const auto token = engine.try_lock("job", {.lease = lease})->detach();
  auto adopted = other.adopt("job", token);
  REQUIRE(adopted);
  CHECK(adopted->token() == token);
  CHECK(adopted->valid());
  CHECK(other.inspect("job")->lease == lease);
  const auto begun = database.admin().acquired_at("job");
  CHECK(eventually([&] { return database.admin().expires_at("job") > begun + 3 * lease; }));
  CHECK(adopted->release() == Released::freed);
}

TEST_CASE("adopting can give the lease another length") {
  Database database;
  auto engine = database.engine();
  const auto token = engine.try_lock("job")->detach();
  const auto adopted = engine.adopt("job", token, {.lease = 10min, .renew = false});
  REQUIRE(adopted);
  CHECK(engine.inspect("job")->lease == 10min);
  CHECK(engine.inspect("job")->left > 9min);
  CHECK(adopted->remaining() > 9min);
}

TEST_CASE("a token that is not the current holder's adopts nothing and changes nothing") {
  Database database;
  auto engine = database.engine();
  CHECK_FALSE(engine.adopt("nobody ever had it", Token{1}));
  auto old = engine.try_lock("job", {.renew = false});
  REQUIRE(old);
  const auto before = old->detach();
  database.admin().expire("job");
  const auto lock = engine.try_lock("job", {.renew = false});
  REQUIRE(lock);
  const auto row = database.admin().row("job");
  CHECK_FALSE(engine.adopt("job", before));
  CHECK_FALSE(engine.adopt("job", Token{number(lock->token()) + 1}));
  CHECK(database.admin().row("job") == row);
  const auto freed = engine.try_lock("free")->token();
  CHECK_FALSE(engine.adopt("free", freed));
}
