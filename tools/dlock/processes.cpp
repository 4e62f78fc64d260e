// Which processes are killed with a command: its group, and this process's own children in this session, until none is
// left. Read from /proc/PID/stat.
//
// Who forks and ends at once is easily missed: its number is listed, and when it is read it is gone, and its child was
// not listed yet. So the list is read again until it names nobody new, and only that is an answer.
#include "processes.hpp"

#include "boot_clock.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace dlock::tools::run {
namespace {

constexpr int look_again_ms = 2, look_seldom_ms = 100;
// How often the list is read for one answer; and how many attempts in a row may bring nothing, or no answer, before
// that is taken for the end.
constexpr int most_rounds = 20, most_attempts = 100, most_in_doubt = 14;
// Who cannot be looked for is believed to live for so long.
constexpr Duration longest_doubt = std::chrono::seconds{5};

struct Folder {
  int list = -1;
  int reserve = -1;             // a descriptor, for when there is no other one left
  pid_t spared = 0;             // a process group: that of the run
  std::vector<pid_t> before{};  // children of this process that it had before it was a run
  Duration doubted_since{};     // 0: it is not
};
Folder proc;

struct Process {
  pid_t pid = 0, parent = 0, group = 0, session = 0;
  bool alive = false, stopped = false;
};

enum class Read { done, gone, hidden, failed };  // hidden: another user's, where /proc shows those to nobody else
enum class Found { none, some, unknown };

bool means_gone(int error) { return error == ENOENT || error == ESRCH; }

int open_file(pid_t pid, const char* name) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "%d/%s", pid, name);
  const auto open = [&] { return ::openat(proc.list, path.data(), O_RDONLY | O_CLOEXEC); };
  int file = open();
  if (file >= 0 || (errno != EMFILE && errno != ENFILE) || proc.reserve < 0) return file;
  ::close(proc.reserve);
  proc.reserve = -1;
  return open();
}

// The beginning of a file, with a NUL behind it.
template <std::size_t size>
Read read_file(pid_t pid, const char* name, std::array<char, size>& text) {
  const int file = open_file(pid, name);
  if (file < 0) return means_gone(errno) ? Read::gone : errno == EPERM || errno == EACCES ? Read::hidden : Read::failed;
  const auto count = ::read(file, text.data(), text.size() - 1);
  const int error = count < 0 ? errno : 0;
  ::close(file);
  if (proc.reserve < 0) proc.reserve = ::fcntl(proc.list, F_DUPFD_CLOEXEC, 0);
  if (count < 0) return means_gone(error) ? Read::gone : Read::failed;
  text[static_cast<std::size_t>(count)] = '\0';
  return count == 0 ? Read::gone : Read::done;
}

// What the kernel tells of everybody.
Read ask_about(pid_t pid, Process& process) {
  process = {pid, 0, ::getpgid(pid), ::getsid(pid), true, false};
  return process.group < 0 || process.session < 0 ? Read::gone : Read::done;
}

Read read_process(pid_t pid, Process& process) {
  std::array<char, 1024> text{};
  const auto read = read_file(pid, "stat", text);
  if (read == Read::hidden) return ask_about(pid, process);
  if (read != Read::done) return read;
  // The name may hold anything, also blanks and parentheses.
  const char* rest = std::strrchr(text.data(), ')');
  if (rest == nullptr) return Read::failed;
  char state = 0;
  int threads = 0;
  if (std::sscanf(rest + 1, " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d", &state,
                  &process.parent, &process.group, &process.session, &threads) != 5)
    return Read::failed;
  process.pid = pid;
  process.stopped = state == 'T';
  process.alive = (state != 'Z' && state != 'X') || threads > 1;  // a first thread may end before the others
  return Read::done;
}

// Bit n - 1: signal n. None also where it is gone.
std::uint64_t ignored_by(pid_t pid) {
  constexpr std::string_view title = "\nSigIgn:";
  std::array<char, 4096> text{};
  if (read_file(pid, "status", text) != Read::done) return 0;
  const char* line = std::strstr(text.data(), title.data());
  return line == nullptr ? 0 : std::strtoull(line + title.size(), nullptr, 16);
}

// Calls `see` with each number as soon as it is listed, a few at a time, until that says false. False: the list cannot
// be read.
template <class See>
bool list_processes(See see) {
  constexpr std::size_t longest_entry = 280;
  alignas(dirent64) std::array<char, longest_entry> entries{};
  if (::lseek(proc.list, 0, SEEK_SET) != 0) return false;
  for (;;) {
    const auto size = ::getdents64(proc.list, entries.data(), entries.size());
    if (size <= 0) return size == 0;
    for (ssize_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      at += entry->d_reclen;
      char* end = nullptr;
      const long pid = std::strtol(entry->d_name, &end, 10);
      if (pid > 0 && *end == '\0' && !see(static_cast<pid_t>(pid))) return true;
    }
  }
}

// Reads all processes, those that come meanwhile included, until one `is` what is looked for. none: there was none at
// the moment of the last list.
template <class Is>
Found find(pid_t group, Is is) {
  if (!processes_are_known()) return Found::unknown;
  std::vector<pid_t> seen, fresh;
  int quiet = 0;  // lists in a row that named nobody whose child may have been missed
  for (int round = 0; round < most_rounds; ++round) {
    ++quiet;
    fresh.clear();
    auto found = Found::none;
    const bool listed = list_processes([&](pid_t pid) {
      if (std::ranges::binary_search(seen, pid)) return true;
      fresh.push_back(pid);
      Process process;
      const auto read = read_process(pid, process);
      if (read == Read::failed) found = Found::unknown;
      else if (read == Read::done && is(process)) found = Found::some;
      // Whose child it may be that was not listed yet.
      const bool ours = pid != group && (process.group == group || process.session == ::getsid(0));
      if (read == Read::gone || (ours && !process.alive)) quiet = 0;
      return found == Found::none;
    });
    if (found != Found::none) return found;
    if (!listed) return Found::unknown;
    if (quiet == 2) return Found::none;
    seen.insert(seen.end(), fresh.begin(), fresh.end());
    std::ranges::sort(seen);
  }
  return Found::unknown;
}

// Where nothing is found out for long, nobody is taken to be left: a lock is not held for ever because of that.
bool may_live(Found found) {
  if (found != Found::unknown) {
    proc.doubted_since = {};
    return found == Found::some;
  }
  const auto now = boot_now();
  if (proc.doubted_since == Duration{}) proc.doubted_since = now;
  return now - proc.doubted_since < longest_doubt;
}

bool was_there_before(pid_t pid) { return std::ranges::find(proc.before, pid) != proc.before.end(); }

// Whether that one may come to be a child of this process, when those between have ended.
bool may_descend(Process process) {
  constexpr int most_generations = 100;
  for (int generation = 0; generation < most_generations && process.parent > 0; ++generation) {
    if (was_there_before(process.pid)) return false;
    if (process.parent == ::getpid()) return true;
    if (read_process(process.parent, process) != Read::done) return true;  // it has another parent by now
  }
  return false;
}

enum class Left { nobody, one, one_for_later };

// What there is to be waited for of a process, which is killed if it is a child.
Left end(const Process& process, pid_t group) {
  if (!process.alive || (was_there_before(process.pid) && process.group != group)) return Left::nobody;
  const bool of_session = process.session == ::getsid(0);
  if (!of_session || process.parent != ::getpid()) {
    // Its number may be another process's by now, so it is only asked.
    if (process.group == group) return ::kill(process.pid, 0) == 0 ? Left::one : Left::nobody;
    return of_session && may_descend(process) ? Left::one_for_later : Left::nobody;
  }
  siginfo_t info{};  // a child's number is its own
  if (::waitid(P_PID, static_cast<id_t>(process.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return Left::nobody;
  const bool hit = ::kill(process.pid, SIGKILL) == 0;
  // At one stroke, also those that it forks at this moment.
  if (process.group > 1 && process.group != ::getpgrp() && process.group != proc.spared)
    ::kill(-process.group, SIGKILL);
  return hit ? Left::one : Left::nobody;
}

// KILL to a group reaches all of it at one stroke. Who is waited for here may have ended, and not be reaped.
void kill_unseen(pid_t group) {
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    if (group <= 0 || ::kill(-group, SIGKILL) != 0) return;
    ::poll(nullptr, 0, look_again_ms);
  }
}

}  // namespace

void open_processes() noexcept {
  if (proc.list >= 0) ::close(proc.list);
  if (proc.reserve >= 0) ::close(proc.reserve);
  proc.list = proc.reserve = -1;
  const bool first = proc.spared == 0;
  if (first) proc.spared = ::getpgrp();
  const int folder = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  std::array<char, 32> self{};
  if (::readlinkat(folder, "self", self.data(), self.size() - 1) <= 0 || std::atol(self.data()) != ::getpid()) {
    ::close(folder);
    return;
  }
  proc.list = folder;
  proc.reserve = ::fcntl(folder, F_DUPFD_CLOEXEC, 0);
  if (!first) return;
  find(-1, [](const Process& process) {
    if (process.parent == ::getpid()) proc.before.push_back(process.pid);
    return false;
  });
}

bool processes_are_known() noexcept { return proc.list >= 0; }

bool group_lives(pid_t group) {
  if (!processes_are_known()) return ::kill(-group, 0) == 0 || errno != ESRCH;
  return may_live(find(group, [&](const Process& process) { return process.alive && process.group == group; }));
}

bool group_heeds(pid_t group, std::uint64_t signals) {
  if (!processes_are_known()) return group_lives(group);
  return may_live(find(group, [&](const Process& process) {
    return process.alive && process.group == group && (signals & ~ignored_by(process.pid)) != 0;
  }));
}

bool group_is_stopped(pid_t group) {
  return find(group, [&](const Process& process) {
           return process.alive && process.group == group && process.stopped;
         }) == Found::some;
}

void kill_all(pid_t group) {
  if (!processes_are_known()) {
    kill_unseen(group);
    return;
  }
  int attempts = 0, in_doubt = 0;
  for (int pause = look_again_ms; attempts < most_attempts && in_doubt < most_in_doubt;
       pause = std::min(pause * 2, look_seldom_ms)) {
    if (group > 0) ::kill(-group, SIGKILL);
    bool left = false, later = false;
    const auto found = find(group, [&](const Process& process) {
      const auto what = end(process, group);
      left = left || what == Left::one;
      later = later || what == Left::one_for_later;
      return false;
    });
    if (!left && !later && found == Found::none) return;
    attempts = left ? 0 : attempts + 1;
    in_doubt = left || later || found != Found::unknown ? 0 : in_doubt + 1;
    ::poll(nullptr, 0, pause);
  }
}

}  // namespace dlock::tools::run
