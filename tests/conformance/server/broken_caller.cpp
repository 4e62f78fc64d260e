// The promise that an application's connection that is gone is said to be gone, whatever its driver remembers of it.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/proxy.hpp"

#include <doctest/doctest.h>

#include <exception>

using namespace dlock;
using namespace dlock::test;

TEST_CASE(
    "with_fence, a fence and a lock in a transaction on a connection that is gone say that it is broken, each time") {
  ServerDatabase database;
  Proxy proxy(database.server());
  auto engine = database->engine();
  auto lock = engine.lock("job");
  Caller application(database.server(), proxy.address());
  proxy.refuse();
  try {
    application.run("SELECT 1");
    FAIL("it is still there");
  } catch (const std::exception&) {  // now the driver knows
  }
  int worked = 0;
  const auto says_so = [](auto call) {
    const auto thrown = thrown_by(call);
    CHECK_MESSAGE((thrown.fault == Fault::unavailable && thrown.names("broken")), thrown.text);
  };
  for (int i = 0; i < 2; ++i) {
    says_so([&] { lock.with_fence(application.native(), [&] { ++worked; }); });
    says_so([&] { lock.fence(application.native()); });
    says_so([&] { static_cast<void>(engine.try_lock_in(application.native(), "other")); });
  }
  CHECK(worked == 0);
  CHECK(lock.valid());
}
