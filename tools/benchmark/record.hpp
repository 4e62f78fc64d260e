// How many measured times are kept in little room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace bench {

// Times in nanoseconds, counted in buckets that grow with the time: a percentile is off by less than 0.1 %, whatever
// its size, and the room needed does not grow with how many there are.
// Threads: one at a time.
class Record {
 public:
  void add(std::int64_t nanoseconds);
  void add(const Record& other);

  std::uint64_t count() const noexcept { return count_; }
  // In microseconds; 0 of nothing. 0 is the smallest of them, 100 the largest; both are exact.
  double percentile_us(double percent) const;
  double mean_us() const;

  // All of it as numbers, for another process, and back.
  std::vector<std::int64_t> numbers() const;
  static Record of(const std::vector<std::int64_t>& numbers);

  // (percent, microseconds) from the smallest to the largest, as a curve is drawn: at every percentile that one time at
  // least lies above.
  std::vector<std::pair<double, double>> curve() const;

 private:
  std::vector<std::uint64_t> buckets_;  // as many as the largest time needs
  std::uint64_t count_ = 0;
  std::int64_t least_ = 0, most_ = 0;
  double sum_ = 0;
};

}  // namespace bench
