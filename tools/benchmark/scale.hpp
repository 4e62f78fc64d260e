// The scenario "scale": what an acquire costs in a table of many rows, beside one of few.
#pragma once

#include "plot.hpp"
#include "record.hpp"
#include "target.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace bench {

struct ScaleOptions {
  Target target{};
  double seconds = 10;
  std::int64_t rows = 1'000'000;  // in the large table; the small one has 1,000
  // Held meanwhile in the large table, and renewed by so many engines in a few processes.
  std::size_t leases = 0, engines = 100;
};

struct ScaleResult {
  Setup setup;
  std::int64_t small_rows = 0;
  Record small_acquire, small_pair, large_acquire, large_pair;
};

// In tables of its own.
ScaleResult run_scale(const ScaleOptions& options);

std::string as_text(const ScaleOptions& options, const ScaleResult& result);
std::string as_json(const ScaleOptions& options, const ScaleResult& result);
Plot as_plot(const ScaleOptions& options, const ScaleResult& result);

}  // namespace bench
