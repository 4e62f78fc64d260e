// This file knows the scenario "pair": one client, one uncontended name, acquire and release.
#pragma once

#include "samples.hpp"
#include "target.hpp"

#include <string>
#include <vector>

namespace bench {

struct Options {
  Target target;
  double seconds = 10;
  bool raw = false;
};

struct Samples {
  Nanoseconds acquire, release, pair;
};

struct Result {
  std::string database;
  std::vector<std::string> weaknesses;  // settings of the server that forget
  Samples dlock, raw;
};

// Runs dlock and, if asked for, its raw peer in alternating slices, each slice on fresh connections: two connections
// to one server can differ by more than what is to be measured.
Result run_pair(const Options& options);

std::string as_text(const Options& options, Result& result);
std::string as_json(const Options& options, Result& result);

}  // namespace bench
