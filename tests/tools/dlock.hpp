// This file knows how a test runs dlock as a person, a script or a crontab would.
#pragma once

#include "migrate.hpp"
#include "support/child.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::test {

using Words = std::vector<std::string>;

inline const std::string dlock_program = DLOCK_TEST_BIN "/dlock";

// Starts it with both output streams in one pipe.
inline Child dlock_child(const Words& arguments, const Words& environment, const std::string& streams = "2>&1 </dev/null") {
  Words command{"/bin/sh", "-c", "exec \"$0\" \"$@\" " + streams, dlock_program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return Child(command, environment);
}

inline Ran dlock(const Words& arguments, const Words& environment, const std::string& streams = "2>&1 </dev/null") {
  auto child = dlock_child(arguments, environment, streams);
  return finish(child);
}

// A shell script in which "dlock" is the program under test.
inline Ran script(const std::string& text, const Words& environment) {
  Child child({"/bin/sh", "-c", "PATH=" DLOCK_TEST_BIN ":$PATH; { " + text + "\n} 2>&1"}, environment);
  return finish(child);
}

// A database, and the environment that names it.
struct Desk {
  Database database{};
  Words environment{"DLOCK_URL=" + database.url(), "DLOCK_OWNER=", "DLOCK_OWNERS="};

  Ran run(const Words& arguments, const std::string& streams = "2>&1 </dev/null") const {
    return dlock(arguments, environment, streams);
  }
  Child start(const Words& arguments, const std::string& streams = "2>&1 </dev/null") const {
    return dlock_child(arguments, environment, streams);
  }
};

// A field of /proc/PID/status, as it stands there.
inline std::string process_field(pid_t pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  return {};
}

inline bool is_stopped(pid_t pid) { return process_field(pid, "State").starts_with('T'); }
inline bool is_gone(pid_t pid) {
  const auto state = process_field(pid, "State");
  return state.empty() || state.starts_with('Z') || state.starts_with('X');
}

// Whether it has taken charge of its signals: from then on it reads them, and asks for the lock.
inline bool reads_signals(pid_t pid) {
  const auto mask = process_field(pid, "SigBlk");
  return !mask.empty() && ((std::stoull(mask, nullptr, 16) >> (SIGTERM - 1)) & 1) != 0;
}

inline std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace dlock::test
