// The promise that an uncontended acquire takes no memory but what the Lock owns, and a release none.
#include "support/allocations.hpp"
#include "support/database.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// What a Lock owns: the state of the grant, with the name in it; the owner's text; the Lock's own state.
constexpr std::size_t owned_by_a_lock = 3;

template <class Work>
std::size_t allocations_of(Work work) {
  const auto before = allocations();
  work();
  return allocations() - before;
}

}  // namespace

TEST_CASE("an uncontended acquire allocates what the Lock owns, a renewal and a release nothing" *
          doctest::skip(!allocations_are_counted())) {
  Database database;
  auto engine = database.engine({.connections = 1});
  std::optional<Lock> lock;
  for (int i = 0; i < 3; ++i) {  // connects, prepares, starts the threads
    lock = engine.try_lock("job");
    lock->extend(30s);
    lock.reset();
  }
  for (int i = 0; i < 3; ++i) {
    CHECK(allocations_of([&] { lock = engine.try_lock("job"); }) == owned_by_a_lock);
    REQUIRE(lock);
    CHECK(allocations_of([&] { lock->extend(30s); }) == 0);
    CHECK(allocations_of([&] { CHECK(lock->release() == Released::freed); }) == 0);
    CHECK(allocations_of([&] { lock.reset(); }) == 0);
    CHECK(allocations_of([&] { lock = engine.try_lock("job", {.reentrance = Reentrance::none}); }) == owned_by_a_lock);
    CHECK(allocations_of([&] { lock.reset(); }) == 0);
  }
}

TEST_CASE("a busy answer allocates nothing" * doctest::skip(!allocations_are_counted())) {
  Database database;
  auto holder = database.engine(), engine = database.engine({.connections = 1});
  const auto lock = holder.try_lock("job");
  std::vector<Lock> others;
  for (int i = 0; i < 5; ++i) others.push_back(holder.lock("other/" + std::to_string(i)));
  // Until it is connected and both statements are prepared: which one is asked goes by what was seen within a second.
  CHECK(eventually([&] { return allocations_of([&] { CHECK_FALSE(engine.try_lock("job")); }) == 0; }));
  // Of each of the others it is not known that it is busy.
  CHECK(std::any_of(others.begin(), others.end(), [&](const Lock& other) {
    return allocations_of([&] { CHECK_FALSE(engine.try_lock(other.name())); }) == 0;
  }));
}
