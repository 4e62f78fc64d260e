// The promise that credentials for a database without users are refused.
#include "support/database.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

using namespace dlock;
using namespace dlock::test;

TEST_CASE("credentials for a file are misuse, and nobody is asked for them") {
  Database database;
  bool asked = false;
  const auto credentials = [&]() -> Credentials {
    asked = true;
    return {};
  };
  const auto thrown = thrown_by([&] { Engine engine(database.url(), {.credentials = credentials}); });
  CHECK(thrown.fault == Fault::misuse);
  CHECK_MESSAGE(thrown.names("nobody logs in"), thrown.text);
  CHECK(thrown_by([&] { static_cast<void>(schema::check(database.url(), {.credentials = credentials})); }).fault ==
        Fault::misuse);
  CHECK_FALSE(asked);
}
