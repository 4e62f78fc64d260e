// Percentiles of many measured times.
#include "samples.hpp"

#include <algorithm>

namespace bench {

double percentile_us(Nanoseconds& samples, double percent) {
  if (samples.empty()) return 0;
  const auto at =
      samples.begin() + static_cast<std::ptrdiff_t>(percent / 100 * static_cast<double>(samples.size() - 1));
  std::nth_element(samples.begin(), at, samples.end());
  return static_cast<double>(*at) / 1000;
}

Record record_of(const Nanoseconds& samples) {
  Record record;
  for (const auto time : samples) record.add(time);
  return record;
}

}  // namespace bench
