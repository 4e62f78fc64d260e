// This file knows the promise that whatever defaults a server gives its connections change nothing.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("on a server with odd defaults locks are granted, refused, renewed, taken over, released and reaped") {
  const auto server = opener().private_server();
  ServerDatabase database(server->place());
  database.server().use_odd_defaults();
  auto engine = database->engine({.retention = 50ms, .grace = 50ms});
  auto other = database->engine();
  const std::string metadata = "it's \\ \"x\" \xC3\x89 \xF0\x9F\x98\x80 \\' -- ";
  const auto lease = 600ms * slowness();
  auto lock = engine.try_lock("job", {.lease = lease, .metadata = metadata});
  REQUIRE(lock);
  Holder who;
  CHECK_FALSE(other.try_lock("job", {}, &who));
  CHECK(who.owner == lock->owner());
  CHECK(who.metadata == metadata);
  const auto begun = database->admin().acquired_at("job");
  CHECK(database->admin().expires_at("job") >= begun + lease);
  CHECK(eventually([&] { return database->admin().expires_at("job") > begun + 2 * lease; }));
  CHECK(lock->valid());
  lock->extend(1h);
  CHECK(database->admin().expires_at("job") > begun + 59min);
  CHECK(lock->release() == Released::freed);

  auto gone = other.try_lock("job", {.at_least = 10min, .renew = false});
  REQUIRE(gone);
  const auto token = gone->detach().token;
  CHECK_FALSE(engine.try_lock("job"));
  database->admin().age("job", 1h);
  const auto next = engine.try_lock("job");
  REQUIRE(next);
  CHECK(number(next->token()) == number(token) + 1);
  CHECK(database->admin().expires_at("job") >= database->admin().acquired_at("job") + 30s);
  CHECK(database->admin().reopens_at("job") == Duration{});

  CHECK(engine.try_lock("caf\xC3\xA9 '\\")->token() > Token{});
  CHECK(engine.list("caf*").size() == 1);
  database->admin().run("UPDATE resource_lock SET acquired_at = 0, expires_at = 0 WHERE owner IS NULL AND name <> ''");
  CHECK(eventually([&] { return engine.reap().removed == 1; }));
  CHECK(engine.list().size() == 1);
}
