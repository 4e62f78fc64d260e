// Busy names are remembered for a second, and another name is not taken for one of them for long.
#include "engine/busy_cache.hpp"

#include <doctest/doctest.h>

#include <string>

using dlock::BootClock;
using dlock::Instant;
using dlock::engine::BusyCache;
using namespace std::chrono_literals;

TEST_CASE("a name is known as busy for its time, and another one is not") {
  BusyCache names;
  const auto now = BootClock::now();
  CHECK_FALSE(names.lately("job", now));
  names.note("job", now);
  CHECK(names.lately("job", now));
  CHECK(names.lately("job", now + BusyCache::memory - 1ms));
  CHECK_FALSE(names.lately("job", now + BusyCache::memory + 1ms));
  CHECK_FALSE(names.lately("other", now));
  names.note("job", now + 1h);
  CHECK(names.lately("job", now + 1h));
}

TEST_CASE("the newest names are remembered however many there are") {
  BusyCache names;
  const auto now = BootClock::now();
  for (int i = 0; i < 10'000; ++i) {
    const auto name = "job " + std::to_string(i);
    CHECK_FALSE(names.lately(name, now));
    names.note(name, now);
    CHECK(names.lately(name, now));
  }
}

TEST_CASE("nothing was busy before the first note, whatever the clock says") {
  BusyCache names;
  for (const auto since : {0ms, 1ms, 999ms, 16'777'215ms, 16'777'216ms, 16'777'217ms})
    for (const char* name : {"", "a", "job"}) CHECK_FALSE(names.lately(name, Instant{since}));
}
