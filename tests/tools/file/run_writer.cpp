// This file knows the promise that a command is dead before its lease is over, though somebody else writes all the time.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"
#include "tools/command.hpp"
#include "tools/processes.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a foreign write transaction that is held past the lease: the command is told, then killed before its end") {
  Database database;
  auto engine = database.engine();
  const auto ttl = 4s * slowness();
  auto child = dlock_at(
      database.url(), {"run", "--ttl", words(ttl), "--renew-every", words(ttl / 10), "-k", words(ttl / 2), "job", "--",
                       "sh", "-c", "trap 'echo told' TERM; echo $$; while :; do sleep 0.05; done"});
  const auto command = static_cast<pid_t>(std::stol(child.line().value_or("0")));
  REQUIRE(command > 0);
  const auto end = database.admin().expires_at("job");
  REQUIRE(eventually([&] { return database.admin().expires_at("job") > end; }));
  Admin writer(database.place());
  writer.block("job");
  CHECK_FALSE(outlives_its_lease(engine, command));
  MESSAGE("the lease had " << engine.inspect("job")->left.count() << " us left");
  const auto ran = finish(child);
  CHECK(ran.code == 79);
  CHECK_MESSAGE(ran.says("told"), ran.out);
  writer.unblock();
  free_by_force(engine, "job");
}

TEST_CASE(
    "a foreign write transaction that is over before the soft deadline is no reason to tell the command anything") {
  Database database;
  auto engine = database.engine();
  const auto ttl = 4s * slowness();
  auto child = dlock_at(database.url(), {"run", "--ttl", words(ttl), "-k", "500ms", "job", "--", "sh", "-c",
                                         "trap 'echo told' TERM; echo $$; read line; exit 3"});
  REQUIRE(child.line());
  const auto renewed = [&] {
    const auto end = database.admin().expires_at("job");
    return eventually([&] { return database.admin().expires_at("job") > end; });
  };
  REQUIRE(renewed());
  Admin writer(database.place());
  writer.block("job");
  REQUIRE(eventually([&] { return engine.inspect("job")->left < ttl * 23 / 40; }));
  writer.unblock();
  REQUIRE(renewed());
  child.tell("go");
  const auto ran = finish(child);
  CHECK(ran.code == 3);
  CHECK_MESSAGE(!ran.says("told"), ran.out);
}
