// Which processes are killed with a command: its group, and this process's own children in this session, until none is
// left. Read from /proc/PID/stat.
#include "processes.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

namespace dlock::tools::run {
namespace {

constexpr int look_again_ms = 2;

struct Process {
  pid_t pid = 0, parent = 0, group = 0, session = 0;
  bool alive = false, stopped = false;
};

// Empty (pid 0) if it is gone.
Process read_process(pid_t pid) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 1024> text{};
  const auto size = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  if (size <= 0) return {};
  // The name may hold anything, also blanks and parentheses.
  const char* rest = std::strrchr(text.data(), ')');
  if (rest == nullptr) return {};
  char state = 0;
  Process process;
  int threads = 0;
  if (std::sscanf(rest + 1, " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d", &state,
                  &process.parent, &process.group, &process.session, &threads) != 5)
    return {};
  process.pid = pid;
  process.stopped = state == 'T';
  process.alive = (state != 'Z' && state != 'X') || threads > 1;  // a first thread may end before the others
  return process;
}

// Bit n - 1: signal n. None also where it is gone.
std::uint64_t ignored_by(pid_t pid) {
  constexpr std::string_view title = "SigIgn:";
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(title)) return std::strtoull(line.c_str() + title.size(), nullptr, 16);
  return 0;
}

template <class See>
void for_each_process(See see) {
  DIR* folder = ::opendir("/proc");
  if (folder == nullptr) return;
  while (const dirent* entry = ::readdir(folder)) {
    char* end = nullptr;
    const long pid = std::strtol(entry->d_name, &end, 10);
    if (pid <= 0 || *end != '\0') continue;
    if (const auto process = read_process(static_cast<pid_t>(pid)); process.pid != 0 && process.alive) see(process);
  }
  ::closedir(folder);
}

}  // namespace

bool group_lives(pid_t group) {
  bool found = false;
  for_each_process([&](const Process& process) { found = found || process.group == group; });
  return found;
}

bool group_heeds(pid_t group, std::uint64_t signals) {
  bool found = false;
  for_each_process([&](const Process& process) {
    found = found || (process.group == group && (signals & ~ignored_by(process.pid)) != 0);
  });
  return found;
}

bool group_is_stopped(pid_t group) {
  bool found = false;
  for_each_process([&](const Process& process) { found = found || (process.group == group && process.stopped); });
  return found;
}

void kill_all(pid_t group) {
  for (;;) {
    if (group > 0) ::kill(-group, SIGKILL);
    bool left = false;
    for_each_process([&](const Process& process) {
      const bool of_group = process.group == group;
      const bool child = process.parent == ::getpid() && process.session == ::getsid(0);
      if (!of_group && !child) return;
      // Of the group's a number may be another process's by now, so it is only asked; a child's number is its own.
      left = ::kill(process.pid, child ? SIGKILL : 0) == 0 || left;
    });
    if (!left) return;
    ::poll(nullptr, 0, look_again_ms);
  }
}

}  // namespace dlock::tools::run
