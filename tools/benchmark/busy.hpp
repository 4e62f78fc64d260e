// The scenario "busy": a try on a lock that somebody holds, beside a select of its row.
#pragma once

#include "plot.hpp"
#include "record.hpp"
#include "target.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct BusyOptions {
  Target target{};
  double seconds = 10;
  bool raw = false;  // our statement through the plain client library, too
};

struct BusyResult {
  Setup setup;
  Record dlock, select, raw;
  // Bytes that the database's log grew by while dlock tried, in each round: all that was written there, by anybody.
  std::vector<std::int64_t> log_bytes;
};

BusyResult run_busy(const BusyOptions& options);

std::string as_text(const BusyOptions& options, const BusyResult& result);
std::string as_json(const BusyOptions& options, const BusyResult& result);
Plot as_plot(const BusyOptions& options, const BusyResult& result);

}  // namespace bench
