// Fork, and words on a pair of sockets.
#include "helper.hpp"

#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace bench {
namespace {

constexpr char failed = '!';

std::array<int, 2> pair_of_sockets() {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) != 0)
    throw std::runtime_error(fmt::format("socketpair: {}", std::strerror(errno)));
  return sockets;
}

[[noreturn]] void run(const std::function<void(Line&)>& body, Line line) noexcept {
  int code = 0;
  try {
    body(line);
  } catch (const std::exception& error) {
    line.say_failure(error.what());
    code = 1;
  }
  ::_exit(code);
}

}  // namespace

Line::~Line() {
  if (socket_ >= 0) ::close(socket_);
}

void Line::say(char what, std::int64_t number) {
  std::array<char, 1 + sizeof number> packet{what};
  std::memcpy(packet.data() + 1, &number, sizeof number);
  if (::send(socket_, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) hear();  // which says why
}

void Line::say_failure(const char* text) noexcept {
  std::array<char, 1000> packet{failed};
  const auto length = std::min(std::strlen(text), packet.size() - 1);
  std::memcpy(packet.data() + 1, text, length);
  static_cast<void>(::send(socket_, packet.data(), 1 + length, MSG_NOSIGNAL));
}

Word Line::hear() {
  std::array<char, 1000> packet{};
  ssize_t size = 0;
  do size = ::recv(socket_, packet.data(), packet.size(), 0);
  while (size < 0 && errno == EINTR);
  if (size <= 0) throw std::runtime_error("a process of the benchmark has ended before its time");
  if (packet[0] == failed) throw std::runtime_error(std::string(packet.data() + 1, static_cast<std::size_t>(size) - 1));
  Word word{packet[0], 0};
  std::memcpy(&word.number, packet.data() + 1, sizeof word.number);
  return word;
}

Word Line::hear(char what) {
  const auto word = hear();
  if (word.what != what) throw std::logic_error(fmt::format("heard '{}' instead of '{}'", word.what, what));
  return word;
}

Helper::Helper(const std::function<void(Line&)>& body) : line_(-1) {
  const auto sockets = pair_of_sockets();
  line_ = Line(sockets[0]);
  Line theirs(sockets[1]);
  const auto parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
  if (pid_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  run(body, std::move(theirs));
}

Helper::~Helper() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

double Helper::processor() const {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

}  // namespace bench
