// The course of a run: ask, start, watch over, release; and its exit codes.
#pragma once

#include "child.hpp"
#include "report.hpp"
#include "supervise.hpp"

#include "tools/shared/console.hpp"

#include <dlock/options.hpp>

#include <optional>
#include <string>
#include <vector>

namespace dlock::tools::run {

constexpr int overtime_code = 124, failed_code = 125, not_executable_code = 126, not_found_code = 127;

// What was asked for, checked.
struct Plan {
  std::string url;
  std::vector<std::string> names;  // several: all of them or none, and exclusive
  EngineOptions engine;
  LockOptions lock;
  std::optional<Duration> wait;  // 0: one try; empty: as long as it takes
  Command command;
  Rules rules;
  int conflict_code = 75, lost_code = 79;
  bool skip_if_unavailable = false;
};

// Answers the exit code. Throws what keeps the command from being started, after noting it in the status file.
int follow(Plan plan, StatusFile& status_file, Console& console);

}  // namespace dlock::tools::run
