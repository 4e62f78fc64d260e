// How a test looks at the processes of a run.
#pragma once

#include "support/eventually.hpp"

#include <dlock/dlock.hpp>

#include <doctest/doctest.h>
#include <sys/types.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace dlock::test {

// What /proc says, or nothing if the process is gone, also if it goes while it is read (read() then fails with ESRCH,
// which a stream's iterators throw and its operator<< does not).
inline std::string process_file(pid_t pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// 'R', 'S', 'T' (stopped), 'Z' (ended, and not reaped yet), …; '-' if it is gone.
inline char state_of(pid_t pid) {
  const auto stat = process_file(pid, "stat");
  const auto name = stat.rfind(") ");
  return name == std::string::npos ? '-' : stat[name + 2];
}

inline bool running(pid_t pid) {
  const auto state = pid > 0 ? state_of(pid) : '-';
  return state != '-' && state != 'Z';
}
inline bool stopped(pid_t pid) { return state_of(pid) == 'T'; }

inline std::string program_of(pid_t pid) {
  const auto name = process_file(pid, "comm");
  return name.substr(0, name.find('\n'));
}

inline pid_t parent_of(pid_t pid) {
  const auto stat = process_file(pid, "stat");
  const auto name = stat.rfind(") ");
  return name == std::string::npos ? 0 : static_cast<pid_t>(std::stol(stat.substr(name + 4)));
}

inline std::vector<pid_t> children_of(pid_t pid) {
  std::istringstream list(process_file(pid, "task/" + std::to_string(pid) + "/children"));
  return {std::istream_iterator<pid_t>(list), {}};
}

// The guardian of a run that has started its command; 0 if there is none.
inline pid_t guardian_of(pid_t run) {
  for (const auto child : children_of(run))
    if (program_of(child) == "dlock-guardian") return child;
  return 0;
}

// Waits for the end of a command under "job", and answers whether it was seen to live when its lease was over already.
inline bool outlives_its_lease(Engine& engine, pid_t command) {
  bool outlived = false;
  // In a crowd who kills, or who is killed, may be without a processor for as long.
  const auto late = std::chrono::seconds{slowness() > 1 ? slowness() : 0};
  const auto ended = [&] {
    const auto row = engine.inspect("job");  // asked first: the command may end meanwhile
    const auto alive = running(command);
    outlived = outlived || (alive && (!row || (row->state != State::held && row->left < -late)));
    return !alive;
  };
  REQUIRE(eventually(ended, far_longer(), closely));
  return outlived;
}

}  // namespace dlock::test
