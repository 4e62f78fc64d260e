// Sums of times saturate, and the clock goes forward.
#include "types/clock.hpp"

#include <dlock/duration.hpp>

#include <doctest/doctest.h>

using namespace dlock;
using namespace std::chrono_literals;

TEST_CASE("a length is added to an instant exactly") {
  const Instant start{1h};
  CHECK(later(start, Duration{1}) - start == 1us);
  CHECK(later(start, 1ns) - start == 1ns);
  CHECK(later(start, 10h) - start == 10h);
  CHECK(later(start, -30min) == Instant{30min});
  CHECK(later(start, Duration{}) == start);
}

TEST_CASE("lengths that do not fit give the end of time") {
  const auto now = BootClock::now();
  CHECK(later(now, std::chrono::hours::max()) == Instant::max());
  CHECK(later(now, Duration::max()) == Instant::max());
  CHECK(later(now, std::chrono::nanoseconds::max()) == Instant::max());
  CHECK(later(now, std::chrono::hours{24 * 365 * 300}) == Instant::max());
  CHECK(later(Instant::max(), 1ns) == Instant::max());
  CHECK(later(Instant::max(), Duration{}) == Instant::max());
  CHECK(later(Instant::max() - 5us, 5us) == Instant::max());
  CHECK(later(Instant::max() - 5us, 4us) == Instant::max() - 1us);
}

TEST_CASE("ten years fit") { CHECK(later(BootClock::now(), std::chrono::hours{24 * 3652}) < Instant::max()); }

TEST_CASE("the clock is steady") {
  auto last = BootClock::now();
  for (int i = 0; i < 1000; ++i) {
    const auto now = BootClock::now();
    CHECK(now >= last);
    last = now;
  }
  CHECK(last > Instant{});
}
