// The story the demo tells: who is killed, who is frozen, and what the ledger says in the end.
#include "ledger.hpp"
#include "roles.hpp"

#include <fmt/core.h>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <vector>

extern char** environ;

namespace demo {
namespace {

constexpr int kill_from_tick = 8, freeze_from_tick = 16;

volatile std::sig_atomic_t interrupted = 0;

// One replica process, and the pipe it speaks through.
struct Process {
  std::string name;
  pid_t pid = -1;
  int pipe = -1;
  std::string unread{};
};

struct Line {
  std::string what;
  int tick = 0;
  long long token = 0, when = 0;
};

Process start(int number, long long begin) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2: " + std::string(std::strerror(errno)));
  Process process{fmt::format("replica-{}", number), -1, ends[0]};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<std::string> words{"dlock-demo", "replica", process.name, std::to_string(begin)};
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int error = ::posix_spawn(&process.pid, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) throw std::runtime_error("posix_spawn: " + std::string(std::strerror(error)));
  return process;
}

class Story {
 public:
  explicit Story(long long begin) : begin_(begin) {}
  ~Story() {
    for (auto& process : processes_) end(process, SIGKILL);
  }
  Story(const Story&) = delete;
  Story& operator=(const Story&) = delete;

  // True if every replica that was meant to has come to its end.
  bool play() {
    for (int i = 0; i < replicas; ++i) processes_.push_back(start(i, begin_));
    while (speaking() && interrupted == 0) {
      std::vector<pollfd> pipes;
      for (const auto& process : processes_) pipes.push_back({process.pipe, POLLIN, 0});
      if (::poll(pipes.data(), pipes.size(), 1000) < 0 && errno != EINTR) throw std::runtime_error("poll");
      for (std::size_t i = 0; i < pipes.size(); ++i)
        if ((pipes[i].revents & (POLLIN | POLLHUP)) != 0) listen(processes_[i]);
    }
    return sound_ && interrupted == 0;
  }

  long long longest_takeover_ms() const { return longest_takeover_ / 1000; }

 private:
  bool speaking() const {
    for (const auto& process : processes_)
      if (process.pipe >= 0) return true;
    return false;
  }

  void tell(const std::string& who, const std::string& text, long long when = now_us()) {
    fmt::print("{:8.3f} s  {:<10} {}\n", static_cast<double>(when - begin_) / 1e6, who, text);
    std::fflush(stdout);
  }

  void end(Process& process, int signal) {
    if (process.pipe >= 0) ::close(process.pipe);
    process.pipe = -1;
    if (process.pid <= 0) return;
    if (signal != 0) ::kill(process.pid, signal);
    int status = 0;
    while (::waitpid(process.pid, &status, 0) < 0 && errno == EINTR) {}
    process.pid = -1;
    if (signal == 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
      sound_ = false;
      tell(process.name, "ended with a failure");
    }
  }

  void listen(Process& process) {
    std::array<char, 4096> buffer{};
    const auto count = ::read(process.pipe, buffer.data(), buffer.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) {
      end(process, 0);
      return;
    }
    process.unread.append(buffer.data(), static_cast<std::size_t>(count));
    for (auto line_end = process.unread.find('\n'); line_end != std::string::npos && process.pipe >= 0;
         line_end = process.unread.find('\n')) {
      std::istringstream words(process.unread.substr(0, line_end));
      process.unread.erase(0, line_end + 1);
      Line line;
      words >> line.what >> line.tick >> line.token >> line.when;
      heard(process, line);
    }
  }

  void heard(Process& process, const Line& line) {
    if (line.what == "granted") {
      granted(process, line);
    } else if (line.what == "outside") {
      if (!killed_ && line.tick >= kill_from_tick) kill(process, line);
      else if (killed_ && frozen_ < 0 && line.tick >= freeze_from_tick) freeze(process, line);
    } else if (line.what == "ran") {
      ran(process, line);
    } else if (line.what == "refused") {
      tell(process.name,
           fmt::format("REFUSED: its late write of tick {} under the old token {}", line.tick, line.token), line.when);
    } else if (line.what == "lost") {
      tell(process.name, fmt::format("knows that its lease (token {}) is lost", line.token), line.when);
    }
  }

  void granted(const Process& process, const Line& line) {
    if (orphaned_since_ == 0) return;
    const auto took = line.when - orphaned_since_;
    orphaned_since_ = 0;
    longest_takeover_ = std::max(longest_takeover_, took);
    tell(process.name, fmt::format("TAKES OVER after {} ms (token {})", took / 1000, line.token), line.when);
  }

  // The frozen one wakes up when its successor has written: from then on the ledger knows the newer token.
  void ran(const Process& process, const Line& line) {
    tell(process.name, fmt::format("ran tick {} (token {})", line.tick, line.token), line.when);
    if (frozen_ < 0 || woken_ || orphaned_since_ != 0) return;
    woken_ = true;
    auto& sleeper = processes_[static_cast<std::size_t>(frozen_)];
    tell(sleeper.name, "SIGCONT: it wakes up in the middle of its run, its lease long over");
    ::kill(sleeper.pid, SIGCONT);
  }

  void kill(Process& process, const Line& line) {
    killed_ = true;
    orphaned_since_ = now_us();
    end(process, SIGKILL);
    tell(process.name, fmt::format("SIGKILL in the middle of tick {} (it held token {})", line.tick, line.token));
  }

  void freeze(Process& process, const Line& line) {
    frozen_ = &process - processes_.data();
    orphaned_since_ = now_us();
    ::kill(process.pid, SIGSTOP);
    tell(process.name, fmt::format("SIGSTOP in the middle of tick {} (it holds token {})", line.tick, line.token));
  }

  const long long begin_;
  std::vector<Process> processes_;
  bool killed_ = false, woken_ = false, sound_ = true;
  std::ptrdiff_t frozen_ = -1;
  long long orphaned_since_ = 0;  // since when the lock's holder is dead or frozen
  long long longest_takeover_ = 0;
};

void heed_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

int conductor(const std::string& url) {
  heed_interrupts();
  Ledger ledger(url);
  ledger.create_afresh();
  fmt::print("Three replicas share the job {}: {} ticks, one a second, leases of {} s.\n", job, ticks, lease.count());
  ::setenv("DLOCK_URL", url.c_str(), 1);  // for the replicas: a URL may hold a password, and arguments are public
  Story story(now_us() + 500'000);
  const bool complete = story.play();
  if (interrupted != 0) return 130;
  const auto summary = ledger.summary();
  fmt::print("{} ticks · {} runs · {} duplicates · {} stale write{} refused · takeover {} ms\n", summary.ticks,
             summary.runs, summary.duplicates, summary.refused, summary.refused == 1 ? "" : "s",
             story.longest_takeover_ms());
  const bool as_promised =
      summary.ticks == ticks && summary.runs == ticks && summary.duplicates == 0 && summary.refused == 1;
  return complete && as_promised ? 0 : 1;
}

}  // namespace demo
