// This file knows the first packet of the protocol: "Initial Handshake Packet" of the MySQL and MariaDB manuals.
#include "greeting.hpp"

#include "types/failure.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

namespace dlock::dialects::DLOCK_DIALECT {
namespace {

constexpr std::size_t header = 4, after_version = 4 + 8 + 1;  // thread id, scramble, filler
constexpr unsigned tls_capability = 0x0800;
constexpr unsigned char protocol = 10;

class Socket {
 public:
  explicit Socket(int family) : descriptor_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const noexcept { return descriptor_; }

  bool wait(short events, Deadline deadline) const {
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - BootClock::now()).count();
      if (left <= 0) return false;
      pollfd source{descriptor_, events, 0};
      const int ready = ::poll(&source, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
      if (ready > 0) return true;
    }
  }

  // 0, or the reason why not.
  int connect(const sockaddr* address, socklen_t size, Deadline deadline) const {
    if (descriptor_ < 0) return errno;
    if (::connect(descriptor_, address, size) == 0) return 0;
    if (errno != EINPROGRESS && errno != EAGAIN) return errno;
    if (!wait(POLLOUT, deadline)) return ETIMEDOUT;
    int error = 0;
    socklen_t error_size = sizeof error;
    ::getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &error_size);
    return error;
  }

 private:
  int descriptor_;
};

[[noreturn]] void refuse(const Server& server, const std::string& why) {
  throw Failure(Cause::refused, fmt::format("MySQL: no connection to {}: {}", server.target, why));
}

// What is known of a greeting that is not complete: nothing.
bool read_greeting(const Server& server, const Socket& socket, Deadline deadline) {
  std::string seen;
  std::array<char, 512> buffer{};
  for (;;) {
    if (seen.size() > header && static_cast<unsigned char>(seen[header]) != protocol) return true;  // an error: the library reads it
    const auto version_end = seen.size() > header ? seen.find('\0', header + 1) : std::string::npos;
    if (version_end != std::string::npos && seen.size() >= version_end + 1 + after_version + 2) {
      const auto at = version_end + 1 + after_version;
      const unsigned flags = static_cast<unsigned char>(seen[at]) | static_cast<unsigned>(static_cast<unsigned char>(seen[at + 1])) << 8U;
      return (flags & tls_capability) != 0;
    }
    if (!socket.wait(POLLIN, deadline)) refuse(server, "no greeting in time");
    const auto count = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) refuse(server, "it hung up before its greeting");
    seen.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

bool offers_tls(const Server& server, Deadline deadline) {
  if (!server.socket.empty()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (server.socket.size() >= sizeof address.sun_path) refuse(server, "the path of the socket is too long");
    std::memcpy(address.sun_path, server.socket.c_str(), server.socket.size() + 1);
    const Socket socket(AF_UNIX);
    if (const int error = socket.connect(reinterpret_cast<const sockaddr*>(&address), sizeof address, deadline); error != 0)
      refuse(server, std::strerror(error));
    return read_greeting(server, socket, deadline);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  const auto port = std::to_string(server.port == 0 ? 3306 : server.port);
  if (const int error = ::getaddrinfo(server.host.c_str(), port.c_str(), &hints, &raw); error != 0)
    refuse(server, ::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found(raw, &::freeaddrinfo);
  int error = 0;
  for (const auto* place = found.get(); place != nullptr; place = place->ai_next) {
    const Socket socket(place->ai_family);
    error = socket.connect(place->ai_addr, place->ai_addrlen, deadline);
    if (error == 0) return read_greeting(server, socket, deadline);
  }
  refuse(server, std::strerror(error));
}

}  // namespace dlock::dialects::DLOCK_DIALECT
