// What is counted, and into which bucket of a histogram it goes.
#include "engine/counters.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace std::chrono_literals;
using dlock::Duration;
using dlock::Histogram;
using dlock::engine::Counters;
using dlock::engine::HistogramCounter;

TEST_CASE("the bounds of a histogram go up, from a tenth of a millisecond to five minutes") {
  const auto& bounds = Histogram::bounds;
  CHECK(std::is_sorted(bounds.begin(), bounds.end()));
  CHECK(std::adjacent_find(bounds.begin(), bounds.end()) == bounds.end());
  CHECK(bounds.front() == 100us);
  CHECK(bounds.back() == 5min);
}

TEST_CASE("what is as long as a bound belongs to it, and what is longer to the next") {
  const auto& bounds = Histogram::bounds;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    HistogramCounter counter;
    counter.add(bounds[i]);
    counter.add(bounds[i] + 1us);
    const auto histogram = counter.read();
    CHECK(histogram.counts[i] == 1);
    CHECK(histogram.counts[i + 1] == 1);
    CHECK(histogram.count() == 2);
    CHECK(histogram.sum == 2 * bounds[i] + 1us);
  }
}

TEST_CASE("the shortest and the longest have a bucket, and what is negative does not shorten the sum") {
  HistogramCounter counter;
  counter.add(0us);
  counter.add(-1s);
  counter.add(Duration::max());
  const auto histogram = counter.read();
  CHECK(histogram.counts.front() == 2);
  CHECK(histogram.counts.back() == 1);
  CHECK(histogram.sum == Duration::max());
}

TEST_CASE("what many threads count at the same time is all there") {
  constexpr int threads = 8, times = 10'000;
  Counters counters;
  dlock::test::in_parallel(threads, [&](int i) {
    for (int n = 0; n < times; ++n) {
      counters.waited.add(1ms * i);
      counters.events.of(dlock::Event::Kind::busy).add();
    }
  });
  const auto waited = counters.waited.read();
  CHECK(waited.count() == threads * times);
  CHECK(waited.sum == times * 28ms);
  CHECK(counters.events.read(dlock::Event::Kind::busy) == threads * times);
}

TEST_CASE("a cause that has no name in the statistics is another one") {
  using dlock::Cause, dlock::RetryCause, dlock::engine::retry_cause;
  CHECK(retry_cause(Cause::disconnected) == RetryCause::disconnected);
  CHECK(retry_cause(Cause::stale_statement) == RetryCause::stale_statement);
  CHECK(retry_cause(Cause::permission) == RetryCause::other);
}
