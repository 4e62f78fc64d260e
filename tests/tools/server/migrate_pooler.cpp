// The promise that a migrator behind a pooler of transactions leaves no lock in a connection that it was lent.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "tools/migrate.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

using namespace dlock;
using namespace dlock::test;

TEST_CASE("a hundred runs of up through a pooler, four at a time, do their work and leave no lock behind") {
  const auto test_database = opener().server_database();
  const auto pooler = test_database->pooler();
  if (!pooler) return;  // nothing is lent here
  const auto url = test_database->url_at(*pooler);
  for (int round = 0; round < 25; ++round) {
    CAPTURE(round);
    in_parallel(4, [&](int) {
      const auto report = schema::up(url);
      if (report.state != schema::SchemaState::good) throw std::runtime_error(report.message);
    });
    REQUIRE(schema::check(url).state == schema::SchemaState::good);
    if (round < 24) REQUIRE(schema::down(url, 0).state == schema::SchemaState::good);
  }
  CHECK(test_database->locks_held() == 0);
  for (const std::string command : {"status", "check", "plan", "up"}) {
    const auto ran = migrate({command, "-u", url});
    CHECK_MESSAGE(ran.code == 0, ran.out);
  }
  CHECK(test_database->locks_held() == 0);
}
