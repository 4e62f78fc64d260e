// How a test runs the dlock command as a person would.
#pragma once

#include "migrate.hpp"
#include "support/paths.hpp"

#include <chrono>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace dlock::test {

// As an option takes it.
inline std::string words(std::chrono::milliseconds length) { return std::to_string(length.count()) + "ms"; }

// Starts dlock on a database, its two output streams in one pipe (or as `streams` says). A run inherits no lock.
inline Child dlock_at(const std::string& url, std::vector<std::string> arguments, const std::string& streams = "2>&1") {
  std::vector<std::string> command{"/bin/sh", "-c", "exec \"$0\" \"$@\" " + streams, path::tool("dlock")};
  command.insert(command.end(), std::make_move_iterator(arguments.begin()), std::make_move_iterator(arguments.end()));
  return Child(command,
               {"DLOCK_URL=" + url, "SHELL=/bin/sh", "DLOCK_NAME=", "DLOCK_OWNER=", "DLOCK_OWNERS=", "DLOCK_JOB="});
}

// Whether it has come so far that a signal would not simply end it.
inline bool heeds(const Child& child, int signal) {
  std::ifstream status("/proc/" + std::to_string(child.pid()) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigBlk:") || line.starts_with("SigCgt:"))
      if ((std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0) return true;
  return false;
}

inline Ran dlock_tool(const std::string& url, std::vector<std::string> arguments,
                      const std::string& streams = "2>&1 </dev/null") {
  auto child = dlock_at(url, std::move(arguments), streams);
  return finish(child);
}

}  // namespace dlock::test
