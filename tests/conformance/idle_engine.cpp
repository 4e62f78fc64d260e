// This file knows the promise that an engine that holds locks and does nothing else has two threads.
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <iterator>
#include <vector>

using namespace dlock;
using namespace dlock::test;

namespace {

// One that has just ended may be among them for a moment.
std::ptrdiff_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

}  // namespace

TEST_CASE("an engine has no thread before it has held a lock, and two from then on") {
  Database database;
  const auto before = threads();
  auto engine = database.engine();
  CHECK(eventually([&] { return threads() <= before; }));
  std::vector<Lock> locks;
  for (const char* name : {"a", "b", "c"}) locks.push_back(engine.lock(name));
  CHECK(eventually([&] { return threads() <= before + 2; }));
  locks.clear();
  CHECK(eventually([&] { return threads() <= before + 2; }));
}
