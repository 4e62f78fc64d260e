// This file knows the command that runs under the lock: one process group, and how it ended.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace dlock::tools::run {

struct Command {
  std::vector<std::string> words;                                // executed directly, never through a shell
  std::vector<std::pair<std::string, std::string>> environment;  // replacing inherited values
  bool no_stdin = false;
  sigset_t mask{};                                               // the signal mask it starts with
};

// How a process ended, or that it was stopped.
struct Ended {
  int status = 0;  // 0 to 255, or 128 + signal
  int signal = 0;  // that ended it; 0: it exited
};

// One child in a process group of its own. Owns: the group; destroying it while the child lives kills the group.
class Child {
 public:
  // Starts it, in the foreground of the terminal if this process is. `exec_error()` tells if that failed.
  explicit Child(const Command& command);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // errno of a command that could not be executed; 0: it runs.
  int exec_error() const noexcept { return exec_error_; }

  // To every process of the group.
  void signal(int number) const noexcept;

  // Whether the child has ended or was stopped since the last look.
  enum class News { none, stopped, ended };
  News look();
  const Ended& ended() const noexcept { return ended_; }

  // After ^Z: stops this process too, and goes on with the child when it is continued.
  void stop_together();

  // Takes the terminal back.
  void leave_foreground() noexcept;

 private:
  pid_t pid_ = -1;
  int exec_error_ = 0;
  bool foreground_ = false, reaped_ = false;
  Ended ended_;
};

}  // namespace dlock::tools::run
