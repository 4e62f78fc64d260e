// The scenario "reap": how fast idle rows are removed, and what that costs those who lock meanwhile.
#pragma once

#include "plot.hpp"
#include "record.hpp"
#include "target.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace bench {

struct ReapOptions {
  Target target{};
  double seconds = 5;  // of the idle measurement; the other one takes as long as the reaper
  std::int64_t rows = 100'000;
};

struct ReapResult {
  Setup setup;
  std::size_t removed = 0;
  double took = 0;         // seconds of removing, without the grace before it
  Record idle, meanwhile;  // acquires of a client, with no reaper and while it removes
};

// In a table of its own.
ReapResult run_reap(const ReapOptions& options);

std::string as_text(const ReapOptions& options, const ReapResult& result);
std::string as_json(const ReapOptions& options, const ReapResult& result);
Plot as_plot(const ReapOptions& options, const ReapResult& result);

}  // namespace bench
