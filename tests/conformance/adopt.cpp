// This file knows the promise that a grant can be handed on by its token, and only while it is the current one.
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a detached lease stays held, is not renewed, and ends by its time") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("job", {.lease = 400ms});
  REQUIRE(lock);
  const auto end = database.admin().expires_at("job");
  const auto token = lock->detach();
  CHECK(token == lock->token());
  lock.reset();
  CHECK_FALSE(engine.try_lock("job"));
  CHECK(engine.try_lock_for("job", 30s)->token() > token);
  CHECK(database.admin().acquired_at("job") >= end);
}

TEST_CASE("who adopts a lease by its token holds it: renewed, under the same token, until released") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  const auto token = engine.try_lock("job", {.lease = 1s})->detach();
  auto adopted = other.adopt("job", token);
  REQUIRE(adopted);
  CHECK(adopted->token() == token);
  CHECK(adopted->valid());
  CHECK(other.inspect("job")->lease == 1s);
  const auto begun = database.admin().acquired_at("job");
  CHECK(eventually([&] { return database.admin().expires_at("job") > begun + 3s; }));
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
