// This file knows the command that runs under the lock: one process group, and how it ended.
#pragma once

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace dlock::tools::run {

struct Command {
  std::vector<std::string> words;                                // executed directly, never through a shell
  std::vector<std::pair<std::string, std::string>> environment;  // replacing inherited values
  bool no_stdin = false;
  bool in_foreground = false;  // of the terminal at its standard input
  bool hangup_ignored = false;
  sigset_t mask{};             // the signal mask it starts with
};

// How a process ended.
struct Ended {
  int status = 0;      // 0 to 255, or 128 + signal
  int signal = 0;      // that ended it; 0: it exited
  int exec_error = 0;  // errno, if the command could not be executed
};

// One child in a process group of its own. Owns: the group; destroying it while the child lives kills the group.
// Threads: one.
class Child {
 public:
  // Starts it. Throws std::runtime_error.
  explicit Child(const Command& command);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t group() const noexcept { return pid_; }
  // To every process of the group.
  void signal(int number) const noexcept;
  // Whether there is any process of the group left, also after the child itself has ended.
  bool group_lives() const noexcept;

  // Whether the child has ended or was stopped since the last look.
  enum class News { none, stopped, ended };
  News look();
  const Ended& ended() const noexcept { return ended_; }
  int stopped_by() const noexcept { return stopped_by_; }

 private:
  pid_t pid_ = -1;
  int report_ = -1;  // says errno if exec failed; closed by a successful exec
  int stopped_by_ = 0;
  bool reaped_ = false;
  Ended ended_;
};

}  // namespace dlock::tools::run
