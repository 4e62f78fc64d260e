// How a process is started with its standard input and output as pipes.
#include "support/child.hpp"
#include "support/paths.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace dlock::test {
namespace {

[[noreturn]] void fail(int code, const char* what) { throw std::system_error(code, std::generic_category(), what); }

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (auto& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// This process's environment with the settings in the place of its own of the same name.
std::vector<std::string> with_settings(const std::vector<std::string>& settings) {
  std::vector<std::string> all = settings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view own(*entry);
    const auto name = own.substr(0, own.find('=') + 1);
    bool replaced = false;
    for (const auto& setting : settings) replaced = replaced || std::string_view(setting).starts_with(name);
    if (!replaced) all.emplace_back(own);
  }
  return all;
}

}  // namespace

Child::Child(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  int to_child[2], from_child[2];
  if (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(from_child, O_CLOEXEC) != 0) fail(errno, "pipe");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
  auto arguments = command;
  auto settings = with_settings(environment);
  const int code = ::posix_spawn(&pid_, arguments.front().c_str(), &actions, nullptr, pointers(arguments).data(),
                                 pointers(settings).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(to_child[0]);
  ::close(from_child[1]);
  in_ = to_child[1];
  out_ = from_child[0];
  if (code != 0) {
    pid_ = -1;
    ::close(in_);
    ::close(out_);
    fail(code, arguments.front().c_str());
  }
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      in_(std::exchange(other.in_, -1)),
      out_(std::exchange(other.out_, -1)),
      unread_(std::move(other.unread_)) {}

Child::~Child() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    wait();
  }
  if (in_ >= 0) ::close(in_);
  if (out_ >= 0) ::close(out_);
}

std::optional<std::string> Child::line() {
  for (;;) {
    if (const auto end = unread_.find('\n'); end != std::string::npos) {
      auto text = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return text;
    }
    char buffer[4096];
    const auto count = ::read(out_, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    unread_.append(buffer, static_cast<std::size_t>(count));
  }
}

void Child::tell(std::string_view line) {
  const auto text = std::string(line) + "\n";
  if (::write(in_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) fail(errno, "write to the child");
}

void Child::signal(int number) {
  if (pid_ > 0) ::kill(pid_, number);
}

bool Child::running() const noexcept {
  siginfo_t ended{};
  return pid_ > 0 && ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid == 0;
}

ExitStatus Child::wait() { return await_end(std::exchange(pid_, -1)); }

std::vector<std::string> worker(std::initializer_list<std::string> arguments) {
  std::vector<std::string> command{path::worker()};
  command.insert(command.end(), arguments);
  return command;
}

std::vector<std::string> hampered(const std::string& url, std::chrono::milliseconds request_timeout) {
  return {path::hampered(), url, std::to_string(request_timeout.count())};
}

}  // namespace dlock::test
