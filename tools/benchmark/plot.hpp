// How a result is drawn.
#pragma once

#include "record.hpp"

#include <string>
#include <utility>
#include <vector>

namespace bench {

struct Plot {
  std::string title;
  // Times by percentile, one curve each; or
  std::vector<std::pair<std::string, Record>> curves{};
  // one bar each, of what `unit` says.
  std::vector<std::pair<std::string, double>> bars{};
  std::string unit{};
};

// Throws UsageError unless gnuplot is there and the file can be written: to be asked before anything is measured.
void check_plotting(const std::string& file);

void draw(const Plot& plot, const std::string& file);

}  // namespace bench
