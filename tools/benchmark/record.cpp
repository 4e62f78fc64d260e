// Log-linear buckets: every power of two is cut into equally many.
#include "record.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace bench {
namespace {

constexpr unsigned bits = 10;                                     // 1024 buckets a power of two
constexpr std::uint64_t linear = std::uint64_t{1} << (bits + 1);  // below it a bucket is one nanosecond wide

std::size_t bucket_of(std::uint64_t time) {
  if (time < linear) return static_cast<std::size_t>(time);
  const auto shift = static_cast<unsigned>(std::bit_width(time)) - (bits + 1);
  return static_cast<std::size_t>((std::uint64_t{shift} << bits) + (time >> shift));
}

// The middle of a bucket.
double time_of(std::size_t bucket) {
  if (bucket < linear) return static_cast<double>(bucket);
  const auto shift = (bucket >> bits) - 1;
  const auto first = (bucket - (shift << bits)) << shift;
  return static_cast<double>(first) + (static_cast<double>(std::uint64_t{1} << shift) - 1) / 2;
}

}  // namespace

void Record::add(std::int64_t nanoseconds) {
  const auto time = std::max<std::int64_t>(nanoseconds, 0);
  const auto bucket = bucket_of(static_cast<std::uint64_t>(time));
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  ++buckets_[bucket];
  least_ = count_ == 0 ? time : std::min(least_, time);
  most_ = std::max(most_, time);
  sum_ += static_cast<double>(time);
  ++count_;
}

void Record::add(const Record& other) {
  if (other.count_ == 0) return;
  if (other.buckets_.size() > buckets_.size()) buckets_.resize(other.buckets_.size());
  for (std::size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  least_ = count_ == 0 ? other.least_ : std::min(least_, other.least_);
  most_ = std::max(most_, other.most_);
  sum_ += other.sum_;
  count_ += other.count_;
}

std::vector<std::int64_t> Record::numbers() const {
  std::vector<std::int64_t> numbers{least_, most_, std::bit_cast<std::int64_t>(sum_)};
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    if (buckets_[i] > 0) {
      numbers.push_back(static_cast<std::int64_t>(i));
      numbers.push_back(static_cast<std::int64_t>(buckets_[i]));
    }
  return numbers;
}

Record Record::of(const std::vector<std::int64_t>& numbers) {
  Record record;
  record.least_ = numbers.at(0);
  record.most_ = numbers.at(1);
  record.sum_ = std::bit_cast<double>(numbers.at(2));
  for (std::size_t i = 3; i + 1 < numbers.size(); i += 2) {
    const auto bucket = static_cast<std::size_t>(numbers[i]);
    if (bucket >= record.buckets_.size()) record.buckets_.resize(bucket + 1);
    record.buckets_[bucket] = static_cast<std::uint64_t>(numbers[i + 1]);
    record.count_ += record.buckets_[bucket];
  }
  return record;
}

double Record::percentile_us(double percent) const {
  if (count_ == 0) return 0;
  const auto rank = static_cast<std::uint64_t>(std::ceil(percent / 100 * static_cast<double>(count_)));
  if (rank <= 1) return static_cast<double>(least_) / 1000;
  if (rank >= count_) return static_cast<double>(most_) / 1000;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    before += buckets_[i];
    if (before >= rank) return std::clamp(time_of(i), static_cast<double>(least_), static_cast<double>(most_)) / 1000;
  }
  return static_cast<double>(most_) / 1000;
}

double Record::mean_us() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_) / 1000; }

std::vector<std::pair<double, double>> Record::curve() const {
  std::vector<std::pair<double, double>> points;
  for (double above = 100; above * static_cast<double>(count_) >= 100; above /= 1.25)
    points.emplace_back(100 - above, percentile_us(100 - above));
  return points;
}

}  // namespace bench
