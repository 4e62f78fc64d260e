// What becomes of a duration of the caller's own unit.
#include <dlock/duration.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

using namespace dlock;
using namespace std::chrono_literals;

namespace {

Duration told(SaturatingDuration length) { return length; }

}  // namespace

TEST_CASE("a duration of any unit arrives as it is") {
  CHECK(told({}) == 0us);
  CHECK(told(7us) == 7us);
  CHECK(told(30s) == 30s);
  CHECK(told(-5ms) == -5ms);
  CHECK(told(std::chrono::days{3650}) == 87600h);
  CHECK(told(std::chrono::duration<double>{1.5}) == 1500ms);
  CHECK(told(Duration::max()) == Duration::max());
  CHECK(told(Duration::min()) == Duration::min());
}

TEST_CASE("what is wider than microseconds saturates") {
  CHECK(told(std::chrono::hours::max()) == Duration::max());
  CHECK(told(std::chrono::hours::min()) == Duration::min());
  CHECK(told(std::chrono::duration<double, std::milli>{1e300}) == Duration::max());
  CHECK(told(std::chrono::duration<double>{-std::numeric_limits<double>::infinity()}) == Duration::min());
}

TEST_CASE("what is finer than microseconds is rounded away from zero") {
  CHECK(told(1ns) == 1us);
  CHECK(told(1001ns) == 2us);
  CHECK(told(2000ns) == 2us);
  CHECK(told(-1ns) == -1us);
  CHECK(told(-1999ns) == -2us);
  CHECK(told(std::chrono::nanoseconds::max()) == Duration{9223372036854776});
}

TEST_CASE("what no whole number of microseconds divides arrives, too") {
  CHECK(told(std::chrono::duration<std::int64_t, std::ratio<1, 3>>{20'000'000'000'000}) ==
        Duration{6'666'666'666'666'666'667});
}

TEST_CASE("what is no number is refused wherever a negative duration is") {
  CHECK(told(std::chrono::duration<double>{std::numeric_limits<double>::quiet_NaN()}) < 0us);
}

TEST_CASE("a time to come is so far away, rounded up, and one that has passed not at all") {
  const auto soon = std::chrono::steady_clock::now() + 1h;
  CHECK(time_until(soon) <= 1h);
  CHECK(time_until(soon) > 59min);
  CHECK(time_until(std::chrono::system_clock::now() - 1h) == 0us);
  CHECK(time_until(std::chrono::steady_clock::time_point::min()) == 0us);
  CHECK(time_until(std::chrono::steady_clock::time_point::max()) > std::chrono::years{100});
  // Whatever they are counted in, and beyond what the clock's own unit can say.
  CHECK(time_until(std::chrono::sys_seconds::max()) == Duration::max());
  CHECK(time_until(std::chrono::sys_seconds::min()) == 0us);
  using Hours = std::chrono::time_point<std::chrono::steady_clock, std::chrono::hours>;
  CHECK(time_until(Hours::max()) == Duration::max());
  CHECK(time_until(Hours::min()) == 0us);
}
