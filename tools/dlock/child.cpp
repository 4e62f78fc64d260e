// This file knows fork, exec and process groups.
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

struct Start {
  char* const* words;
  char* const* environment;
  const Command& command;
  int report;
};

[[noreturn]] void give_up(int report) {
  const int error = errno;
  static_cast<void>(::write(report, &error, sizeof error));
  ::_exit(error == ENOENT ? 127 : 126);
}

// In the child, between fork() and exec(), where the engine's threads are gone but their locks may be held: only
// async-signal-safe calls.
[[noreturn]] void become(const Start& start) {
  ::setpgid(0, 0);
  if (start.command.in_foreground) ::tcsetpgrp(STDIN_FILENO, ::getpgrp());  // SIGTTOU is blocked until further below
  for (int number = 1; number < NSIG; ++number)
    if (number != SIGHUP || !start.command.hangup_ignored) ::signal(number, SIG_DFL);
  if (start.command.no_stdin) {
    const int nothing = ::open("/dev/null", O_RDONLY);
    if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0) give_up(start.report);
    if (nothing != STDIN_FILENO) ::close(nothing);
  }
  ::sigprocmask(SIG_SETMASK, &start.command.mask, nullptr);
  ::execvpe(start.words[0], start.words, start.environment);
  give_up(start.report);
}

}  // namespace

Child::Child(const Command& command) {
  auto words = command.words;
  auto environment = environment_for(command);
  const auto word_pointers = pointers_to(words);
  const auto environment_pointers = pointers_to(environment);
  std::array<int, 2> report{};
  if (::pipe2(report.data(), O_CLOEXEC | O_NONBLOCK) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
  const Start start{word_pointers.data(), environment_pointers.data(), command, report[1]};
  pid_ = ::fork();
  if (pid_ == 0) become(start);
  const int fork_error = errno;
  ::close(report[1]);
  report_ = report[0];
  if (pid_ < 0) {
    ::close(report_);
    throw std::runtime_error(std::string("fork: ") + std::strerror(fork_error));
  }
  ::setpgid(pid_, pid_);  // in both processes: whoever comes first
}

Child::~Child() {
  if (!reaped_) {
    signal(SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
  }
  ::close(report_);
}

void Child::signal(int number) const noexcept { ::kill(-pid_, number); }

bool Child::group_lives() const noexcept { return ::kill(-pid_, 0) == 0; }

Child::News Child::look() {
  if (reaped_) return News::none;
  int status = 0;
  pid_t changed = 0;
  while ((changed = ::waitpid(pid_, &status, WNOHANG | WUNTRACED)) < 0 && errno == EINTR) {}
  if (changed < 0) throw std::runtime_error(std::string("waitpid: ") + std::strerror(errno));
  if (changed == 0) return News::none;
  if (WIFSTOPPED(status)) {
    stopped_by_ = WSTOPSIG(status);
    return News::stopped;
  }
  reaped_ = true;
  if (WIFSIGNALED(status)) ended_ = {128 + WTERMSIG(status), WTERMSIG(status)};
  else ended_ = {WEXITSTATUS(status)};
  int error = 0;
  if (::read(report_, &error, sizeof error) == static_cast<ssize_t>(sizeof error)) ended_.exec_error = error;
  return News::ended;
}

}  // namespace dlock::tools::run
