// The promise that an engine that holds locks and does nothing else has two threads.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace dlock;
using namespace dlock::test;

TEST_CASE("an engine has no thread before it has held a lock, and two from then on") {
  Database database;
  const auto before = count_threads();
  auto engine = database.engine();
  CHECK(eventually([&] { return count_threads() <= before; }));
  std::vector<Lock> locks;
  for (const char* name : {"a", "b", "c"}) locks.push_back(engine.lock(name));
  CHECK(eventually([&] { return count_threads() <= before + 2; }));
  locks.clear();
  CHECK(eventually([&] { return count_threads() <= before + 2; }));
}
