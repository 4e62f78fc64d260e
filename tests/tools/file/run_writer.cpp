// The promises of dlock while somebody else writes: a command is dead before its lease is over, and a
// name that nobody holds is not called busy.
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
  const std::chrono::milliseconds ttl = 4s * slowness();
  auto child = dlock_at(
      database.url(), {"run", "--ttl", words(ttl), "--renew-every", words(ttl / 10), "-k", words(ttl / 2), "job", "--",
                       "sh", "-c", "trap 'echo told' TERM; echo $$; while :; do sleep 0.05; done"});
  const auto command = static_cast<pid_t>(std::stol(child.line().value_or("0")));
  REQUIRE(command > 0);
  const auto end = database.admin().expires_at("job");
  REQUIRE(eventually([&] { return database.admin().expires_at("job") > end; }));
  Admin writer(database.test_database());
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
  Admin writer(database.test_database());
  writer.block("job");
  REQUIRE(eventually([&] { return engine.inspect("job")->left < ttl * 23 / 40; }));
  writer.unblock();
  REQUIRE(renewed());
  child.tell("go");
  const auto ran = finish(child);
  CHECK(ran.code == 3);
  CHECK_MESSAGE(!ran.says("told"), ran.out);
}

TEST_CASE("while somebody else writes acquire -n is exit code 8 and run -n 125, never busy, and both say who it is") {
  Database database;
  const auto url = database.url();
  database.engine().try_lock("job").reset();
  Admin writer(database.test_database());
  writer.run(database.test_database().begin_writing());
  // At one time: each tries for as long as a request may take.
  auto acquire = dlock_at(url, {"acquire", "-n", "job", "--ttl", "1m"});
  auto run = dlock_at(url, {"run", "-n", "job", "--", "true"});
  const auto check = [](const Ran& ran, int code) {
    CHECK_MESSAGE(ran.code == code, ran.out);
    CHECK_MESSAGE(ran.says("\"job\""), ran.out);
    CHECK_MESSAGE(ran.says("another connection is writing the file"), ran.out);
  };
  check(finish(acquire), 8);
  check(finish(run), 125);
  writer.run("ROLLBACK");
  CHECK(dlock_tool(url, {"run", "-n", "job", "--", "true"}).code == 0);
}
