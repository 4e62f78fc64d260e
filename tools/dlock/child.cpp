// This file knows fork, exec, process groups and terminals.
#include "child.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>

extern char** environ;

namespace dlock::tools::run {
namespace {

// The environment of the child, made before fork(): after it nothing may be allocated.
std::vector<std::string> environment_for(const Command& command) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    const auto name = line.substr(0, line.find('='));
    bool replaced = false;
    for (const auto& [key, value] : command.environment) replaced = replaced || key == name;
    if (!replaced) result.emplace_back(line);
  }
  for (const auto& [key, value] : command.environment) result.push_back(key + "=" + value);
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (auto& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

bool in_foreground() { return ::isatty(STDIN_FILENO) != 0 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp(); }

// In the child, between fork() and exec(): only async-signal-safe calls.
[[noreturn]] void become(char* const* words, char* const* environment, bool foreground, bool no_stdin, const sigset_t& mask,
                         int report) {
  ::setpgid(0, 0);
  if (foreground) ::tcsetpgrp(STDIN_FILENO, ::getpgrp());  // SIGTTOU is blocked until further below
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  if (no_stdin) {
    const int nothing = ::open("/dev/null", O_RDONLY);
    if (nothing >= 0) {
      ::dup2(nothing, STDIN_FILENO);
      ::close(nothing);
    }
  }
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execvpe(words[0], words, environment);
  const int error = errno;
  static_cast<void>(::write(report, &error, sizeof error));
  ::_exit(error == ENOENT ? 127 : 126);
}

}  // namespace

Child::Child(const Command& command) : foreground_(in_foreground()) {
  auto words = command.words;
  auto environment = environment_for(command);
  const auto word_pointers = pointers_to(words);
  const auto environment_pointers = pointers_to(environment);
  std::array<int, 2> report{};
  if (::pipe2(report.data(), O_CLOEXEC) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
  pid_ = ::fork();
  if (pid_ == 0)
    become(word_pointers.data(), environment_pointers.data(), foreground_, command.no_stdin, command.mask, report[1]);
  const int fork_error = errno;
  ::close(report[1]);
  if (pid_ < 0) {
    ::close(report[0]);
    throw std::runtime_error(std::string("fork: ") + std::strerror(fork_error));
  }
  ::setpgid(pid_, pid_);  // in both processes: whoever comes first
  if (foreground_) ::tcsetpgrp(STDIN_FILENO, pid_);
  int error = 0;
  ssize_t count = 0;
  while ((count = ::read(report[0], &error, sizeof error)) < 0 && errno == EINTR) {}
  ::close(report[0]);
  if (count != static_cast<ssize_t>(sizeof error)) return;
  exec_error_ = error;
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
  reaped_ = true;
  leave_foreground();
}

Child::~Child() {
  if (!reaped_ && pid_ > 0) {
    signal(SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
  }
  leave_foreground();
}

void Child::signal(int number) const noexcept {
  if (pid_ > 0) ::kill(-pid_, number);
}

Child::News Child::look() {
  for (;;) {
    int status = 0;
    const pid_t changed = ::waitpid(pid_, &status, WNOHANG | WUNTRACED);
    if (changed < 0 && errno == EINTR) continue;
    if (changed != pid_) return News::none;
    if (WIFSTOPPED(status)) return News::stopped;
    reaped_ = true;
    if (WIFSIGNALED(status)) ended_ = {128 + WTERMSIG(status), WTERMSIG(status)};
    else ended_ = {WEXITSTATUS(status), 0};
    return News::ended;
  }
}

void Child::stop_together() {
  if (!foreground_) return;  // whoever stopped a child in the background will continue it
  ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
  ::raise(SIGSTOP);
  // Continued: fg gave the terminal to this process, or bg did not.
  if (in_foreground()) ::tcsetpgrp(STDIN_FILENO, pid_);
  signal(SIGCONT);
}

void Child::leave_foreground() noexcept {
  if (foreground_) ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
  foreground_ = false;
}

}  // namespace dlock::tools::run
