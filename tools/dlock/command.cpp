// What happens between fork and exec: process group, terminal, signals, environment; and how it is told that exec has
// failed.
#include "command.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <string_view>

extern char** environ;

namespace dlock::tools::run {
namespace {

std::string_view name_of(std::string_view setting) { return setting.substr(0, setting.find('=')); }

std::vector<std::string> environment_with(const Settings& settings) {
  Settings result;
  std::ranges::copy_if(settings, std::back_inserter(result),
                       [](const std::string& setting) { return setting.find('=') != std::string::npos; });
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool replaced = false;
    for (const auto& setting : settings) replaced = replaced || name_of(setting) == name_of(*entry);
    if (!replaced) result.emplace_back(*entry);
  }
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (auto& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

[[noreturn]] void give_up(int report) {
  const int error = errno;
  static_cast<void>(::write(report, &error, sizeof error));
  ::_exit(error == ENOENT ? 127 : 126);
}

struct Start {
  char* const* words;
  char* const* environment;
  const Command& command;
  int report;
  pid_t starter;
};

[[noreturn]] void become(const Start& start) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != start.starter) ::_exit(128 + SIGKILL);  // it ended before this was said
  ::setpgid(0, 0);
  if (start.command.in_foreground) ::tcsetpgrp(STDIN_FILENO, ::getpgrp());  // SIGTTOU is blocked until further below
  for (int number = 1; number < NSIG; ++number)
    if (sigismember(&start.command.ignored, number) <= 0) ::signal(number, SIG_DFL);
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

Launched launch(const Command& command, const Settings& settings) {
  auto words = command.words;
  auto environment = environment_with(settings);
  const auto word_pointers = pointers_to(words);
  const auto environment_pointers = pointers_to(environment);
  std::array<int, 2> report{};
  if (::pipe2(report.data(), O_CLOEXEC | O_NONBLOCK) != 0) return {-1, errno};
  const Start start{word_pointers.data(), environment_pointers.data(), command, report[1], ::getpid()};
  const pid_t pid = ::fork();
  if (pid == 0) become(start);
  const int error = errno;
  ::close(report[1]);
  if (pid < 0) {
    ::close(report[0]);
    return {-1, error};
  }
  ::setpgid(pid, pid);  // in both processes: whoever comes first
  return {pid, 0, report[0]};
}

}  // namespace dlock::tools::run
