// Tells a child process that has ended by itself from one that a signal has ended.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>

#include <cerrno>
#include <ostream>
#include <string>
#include <system_error>

namespace dlock::test {

// How a process ended. Equal to a number if that is its own exit status, so that 128 + n is what a command says of a
// signal that it has heeded, and killed_by(n) what the kernel says of one that it has not.
class ExitStatus {
 public:
  // `status`: as waitpid(2) fills it in.
  static ExitStatus of(int status) noexcept {
    return WIFSIGNALED(status) ? ExitStatus(WTERMSIG(status), true) : ExitStatus(WEXITSTATUS(status), false);
  }

  bool operator==(const ExitStatus&) const noexcept = default;
  bool operator==(int status) const noexcept { return !killed_ && number_ == status; }

  std::string text() const { return (killed_ ? "signal " : "status ") + std::to_string(number_); }
  friend std::ostream& operator<<(std::ostream& out, const ExitStatus& status) { return out << status.text(); }

 private:
  friend ExitStatus exited(int status) noexcept;
  friend ExitStatus killed_by(int signal) noexcept;
  ExitStatus(int number, bool killed) noexcept : number_(number), killed_(killed) {}

  int number_;
  bool killed_;
};

inline ExitStatus exited(int status) noexcept { return {status, false}; }
inline ExitStatus killed_by(int signal) noexcept { return {signal, true}; }

// Waits for the end of a child of this process. Throws where there is none: nothing is known of its end then.
inline ExitStatus await_end(pid_t child) {
  int status = 0;
  // Less than 1 would be any child.
  for (errno = ECHILD; child > 0 && ::waitpid(child, &status, 0) != child;)
    if (errno != EINTR) child = -1;
  if (child <= 0) throw std::system_error(errno, std::generic_category(), "wait for the end of a child");
  return ExitStatus::of(status);
}

}  // namespace dlock::test
