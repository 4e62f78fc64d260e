// The system calls for a terminal without a person.
#include "support/pty.hpp"

#include "support/eventually.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

namespace dlock::test {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (auto& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

Pty::Pty(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  auto words = command;
  auto settings = environment;
  // Each name once: shells go by the last of several, programs by the first.
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view own(*entry);
    const auto name = own.substr(0, own.find('=') + 1);
    if (std::none_of(environment.begin(), environment.end(),
                     [&](const auto& setting) { return setting.starts_with(name); }))
      settings.emplace_back(own);
  }
  const auto arguments = pointers_to(words), variables = pointers_to(settings);
  termios modes{};
  cfmakeraw(&modes);
  modes.c_lflag |= ICANON | ISIG;
  modes.c_iflag |= IXON;
  modes.c_oflag |= OPOST;
  modes.c_cc[VINTR] = '\x03';
  modes.c_cc[VSUSP] = '\x1a';
  modes.c_cc[VEOF] = '\x04';
  modes.c_cc[VSTART] = '\x11';
  modes.c_cc[VSTOP] = '\x13';
  pid_ = ::forkpty(&master_, nullptr, &modes, nullptr);
  if (pid_ == 0) {
    ::execve(arguments[0], arguments.data(), variables.data());
    ::_exit(127);
  }
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "forkpty");
  ::fcntl(master_, F_SETFD, FD_CLOEXEC);
}

Pty::~Pty() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    static_cast<void>(await_end(pid_));
  }
  ::close(master_);
}

void Pty::type(std::string_view keys) {
  if (::write(master_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size()))
    throw std::system_error(errno, std::generic_category(), "write to the terminal");
}

bool Pty::read_more() {
  pollfd source{master_, POLLIN, 0};
  if (::poll(&source, 1, static_cast<int>(far_longer().count())) <= 0) {
    silent_ = true;
    return false;
  }
  std::array<char, 4096> buffer{};
  const auto count = ::read(master_, buffer.data(), buffer.size());  // EIO: everybody has left
  if (count <= 0) return false;
  screen_.append(buffer.data(), static_cast<std::size_t>(count));
  return true;
}

bool Pty::shows(std::string_view text) {
  for (;;) {
    if (const auto at = screen_.find(text, seen_); at != std::string::npos) {
      seen_ = at + text.size();
      return true;
    }
    if (!read_more()) return false;
  }
}

bool Pty::until(const std::function<bool(const std::string&)>& happened) {
  const auto end = std::chrono::steady_clock::now() + far_longer();
  while (!happened(screen_))
    if (std::chrono::steady_clock::now() > end || !read_more()) return false;  // there may be no end of what is said
  return true;
}

void Pty::resize(unsigned short rows, unsigned short columns) {
  const winsize size{rows, columns, 0, 0};
  if (::ioctl(master_, TIOCSWINSZ, &size) != 0)
    throw std::system_error(errno, std::generic_category(), "resize the terminal");
}

ExitStatus Pty::wait() {
  while (read_more()) {}
  if (silent_) ::kill(pid_, SIGKILL);  // it does not end: better a failure than a test without an end
  return await_end(std::exchange(pid_, -1));
}

}  // namespace dlock::test
