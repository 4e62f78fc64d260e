// The promise that an engine opens a connection when it needs one, and two at most.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("an engine that is used by one thread has one connection, and two by however many") {
  ServerDatabase database;
  Proxy proxy(database.server());
  Engine engine(database.server().url_at(proxy.address()), {.timeouts = {.request = 1min, .release = 1min}});
  for (int i = 0; i < 5; ++i) engine.try_lock("job").reset();
  CHECK(proxy.connections() == 1);
  in_parallel(8, [&](int i) {
    for (int k = 0; k < 5; ++k) engine.lock("job " + std::to_string(i)).release();
  });
  CHECK(proxy.connections() <= 2);
}
