// Sockets that change places, and waits of the client library that end; and which ways to log in are left where there
// is no TLS: those that never show the password.
#include "handshake.hpp"

#include "dialects/readiness.hpp"
#include "types/failure.hpp"
#include "types/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace dlock::dialects::mysql {
namespace {

// Those of the client library's ways to log in that never show the password: by proofs, or encrypted with the server's
// public key. Not among them: "mysql_clear_password" and "dialog" (PAM).
constexpr const char* hidden_passwords =
    "mysql_native_password,caching_sha2_password,sha256_password,client_ed25519,parsec,auth_gssapi_client";

thread_local const Deadline* time_for_library = nullptr;

void close_one(int& descriptor) noexcept {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

// Called on a small stack of the library's, from C.
int wait_in_library(my_socket socket, my_bool is_read, int) {
  short has = 0;
  const ForkUnlock unlock;
  try {
    if (time_for_library != nullptr) has = wait_until_ready(socket, is_read != 0 ? POLLIN : POLLOUT, *time_for_library);
  } catch (...) { has = 0; }
  if (has != 0) return 1;
  errno = ETIMEDOUT;
  return 0;
}

}  // namespace

SocketAside::SocketAside(int descriptor) : descriptor_(descriptor) {
  int pair[2];
  real_ = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  const bool paired = real_ >= 0 && ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0;
  if (paired) {
    silent_ = pair[0];
    peer_ = pair[1];
  }
  if (paired && ::dup3(silent_, descriptor, O_CLOEXEC) >= 0) return;
  const int why = errno;
  close_one(real_);
  close_one(silent_);
  close_one(peer_);
  throw Failure(Cause::refused,
                fmt::format("MySQL: no socket could be made: {}", std::generic_category().message(why)));
}

SocketAside::~SocketAside() {
  close_one(real_);
  close_one(silent_);
  close_one(peer_);
}

void SocketAside::put_back() {
  if (::dup3(real_, descriptor_, O_CLOEXEC) < 0)
    throw Failure(Cause::refused, fmt::format("MySQL: the socket is lost: {}", std::generic_category().message(errno)));
  // What the library has asked of the silent one.
  const int on = 1;
  ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(descriptor_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  tame(descriptor_);
}

bool is_connected_by_network(int descriptor) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (descriptor < 0 || ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return false;
  return peer.ss_family == AF_INET || peer.ss_family == AF_INET6;
}

void tame(int descriptor) {
  if (descriptor < 0) return;
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags >= 0 && (flags & O_NONBLOCK) == 0) ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
}

void take_waits_over(MYSQL* connection) {
  mysql_optionsv(connection, MARIADB_OPT_IO_WAIT, reinterpret_cast<void*>(&wait_in_library));
}

TimeForLibrary::TimeForLibrary(const Deadline& deadline) noexcept { time_for_library = &deadline; }
TimeForLibrary::~TimeForLibrary() { time_for_library = nullptr; }

void leave_tls_out(MYSQL* connection) {
  const my_bool no = 0;
  // One file named for TLS is enough for the library to believe that it has TLS, and to send passwords as they are.
  for (const auto option : {MYSQL_OPT_SSL_KEY, MYSQL_OPT_SSL_CERT, MYSQL_OPT_SSL_CA, MYSQL_OPT_SSL_CAPATH,
                            MYSQL_OPT_SSL_CIPHER, MYSQL_OPT_SSL_CRL, MYSQL_OPT_SSL_CRLPATH})
    mysql_optionsv(connection, option, static_cast<const char*>(nullptr));
  mysql_options(connection, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &no);
  mysql_options(connection, MYSQL_OPT_SSL_ENFORCE, &no);
}

void keep_password_hidden(MYSQL* connection) {
  mysql_optionsv(connection, MARIADB_OPT_RESTRICTED_AUTH, hidden_passwords);
}

}  // namespace dlock::dialects::mysql
