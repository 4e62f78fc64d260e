// The record of a benchmark answers as a sorted list of all of its times would.
#include "tools/benchmark/record.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace {

// Below and above any time that a benchmark meets: a nanosecond to a quarter of an hour.
std::vector<std::int64_t> times(std::size_t count) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(0, 40);
  std::vector<std::int64_t> result(count);
  std::generate(result.begin(), result.end(), [&] { return static_cast<std::int64_t>(std::exp2(exponent(random))); });
  return result;
}

bench::Record record_of(const std::vector<std::int64_t>& times) {
  bench::Record record;
  for (const auto time : times) record.add(time);
  return record;
}

}  // namespace

TEST_CASE("every percentile is within a thousandth of the one that sorting gives") {
  auto all = times(10'000);
  const auto record = record_of(all);
  std::sort(all.begin(), all.end());
  REQUIRE(record.count() == all.size());
  for (const double percent : {0.0, 1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 100.0}) {
    const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(all.size())));
    const auto exact = static_cast<double>(all.at(rank == 0 ? 0 : rank - 1)) / 1000;
    CAPTURE(percent);
    CHECK(std::abs(record.percentile_us(percent) - exact) <= exact / 1000);
  }
}

TEST_CASE("the smallest, the largest and the mean are exact") {
  const auto record = record_of({5'000'001, 1'234'567, 3'000'003});
  CHECK(record.percentile_us(0) == 1234.567);
  CHECK(record.percentile_us(100) == 5000.001);
  CHECK(record.mean_us() == doctest::Approx(3078.190333));
}

TEST_CASE("a record that another process sends as numbers is the same") {
  const auto record = record_of(times(1000));
  const auto same = bench::Record::of(record.numbers());
  CHECK(same.count() == 1000);
  CHECK(same.numbers() == record.numbers());
  CHECK(same.mean_us() == record.mean_us());
  CHECK(same.curve() == record.curve());
  CHECK(bench::Record::of(bench::Record{}.numbers()).count() == 0);
}

TEST_CASE("nothing measured is nothing, and a time that went backwards counts as none") {
  bench::Record record;
  CHECK(record.count() == 0);
  CHECK(record.percentile_us(50) == 0);
  CHECK(record.mean_us() == 0);
  CHECK(record.curve().empty());
  record.add(-5);
  CHECK(record.count() == 1);
  CHECK(record.percentile_us(100) == 0);
}

TEST_CASE("records added together answer as one") {
  const auto all = times(2000);
  const std::vector<std::int64_t> first(all.begin(), all.begin() + 700), second(all.begin() + 700, all.end());
  auto sum = record_of(first);
  sum.add(record_of(second));
  sum.add(bench::Record());
  const auto whole = record_of(all);
  CHECK(sum.count() == whole.count());
  for (const double percent : {0.0, 50.0, 99.0, 100.0})
    CHECK(sum.percentile_us(percent) == whole.percentile_us(percent));
}

TEST_CASE("a curve rises, and ends where less than one time lies above") {
  const auto curve = record_of(times(1000)).curve();
  REQUIRE(curve.size() > 10);
  CHECK(curve.front().first == 0);
  CHECK(curve.back().first <= 99.9);
  CHECK(std::is_sorted(curve.begin(), curve.end()));
  CHECK(std::is_sorted(curve.begin(), curve.end(), [](const auto& a, const auto& b) { return a.second < b.second; }));
}

TEST_CASE("a million of the same time answer as one") {
  bench::Record one, many;
  one.add(300'000);
  for (int i = 0; i < 1'000'000; ++i) many.add(300'000);
  CHECK(many.count() == 1'000'000);
  CHECK(many.percentile_us(50) == one.percentile_us(50));
}
