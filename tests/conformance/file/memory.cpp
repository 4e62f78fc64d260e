// The promise that a held lease takes little memory in the engine.
#include "support/allocations.hpp"
#include "support/database.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <vector>

using namespace dlock;
using namespace dlock::test;

TEST_CASE("a held lease takes at most 544 bytes in the engine, and leaves none behind" *
          doctest::skip(!allocations_are_counted())) {
  constexpr std::size_t leases = 1000;
  Database database;
  auto engine = database.engine();
  engine.try_lock("warm")->release();
  std::vector<Lock> locks;
  locks.reserve(leases);
  const auto before = bytes_allocated();
  for (std::size_t i = 0; i < leases; ++i) locks.push_back(engine.lock(fmt::format("lease {}", i)));
  const auto taken = bytes_allocated() - before, of_each = taken / leases;
  CHECK(of_each <= 544);
  locks.clear();
  CHECK(bytes_allocated() < before + taken / 10);  // some room stays for the next ones
}
