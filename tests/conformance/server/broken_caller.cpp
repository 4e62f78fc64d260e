// The promise that an application's connection that is gone is said to be gone, whatever its driver remembers of it.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <exception>
#include <future>
#include <thread>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

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

TEST_CASE("a transaction whose connection has died while it waited for a name is gone, and the name not merely busy") {
  ServerDatabase database;
  Proxy proxy(database.server());
  auto engine = database->engine();
  auto others = database->engine();
  const auto busy = others.lock("busy");
  for (const bool native : {true, false}) {
    INFO("native: " << native);
    proxy.pass();
    Caller application(database.server(), proxy.address());
    application.begin(database.server().beginnings().front());
    auto waited = std::async(std::launch::async, [&] {
      const auto transaction = native ? application.native() : TransactionRef(application.runner());
      return engine.try_lock_in(transaction, "busy", 9s);  // less than what the caller's connection is left silent for
    });
    // Whenever it dies, it must be told of; to see that it is told of at the end too, it dies while nothing is asked.
    std::this_thread::sleep_for(1s * slowness());
    proxy.refuse();
    try {
      waited.get();
      FAIL("a connection that is gone was taken for a busy name");
    } catch (const Error& error) {
      CHECK_MESSAGE(error.fault() == Fault::unavailable, error.what());
    } catch (const std::exception&) {  // the runner's own
      CHECK_FALSE(native);
    }
  }
}
