// PgBouncer's settings, and that a port which was free may not be so any more.
#include "pooler.hpp"

#include "support/eventually.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

namespace dlock::test::postgresql {
namespace {

const std::string program = "/usr/sbin/pgbouncer";

sockaddr_in local(std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto at = local(0);
  socklen_t size = sizeof at;
  ::bind(socket, reinterpret_cast<sockaddr*>(&at), size);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size);
  ::close(socket);
  return ntohs(at.sin_port);
}

bool answers(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto at = local(port);
  const bool connected = ::connect(socket, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  ::close(socket);
  return connected;
}

}  // namespace

Pooler::Pooler(const Address& server, const std::string& user, const std::string& password,
               const std::string& database) {
  if (::access(program.c_str(), X_OK) != 0)
    throw std::runtime_error(program + " is not installed; on Debian: apt-get install pgbouncer");
  const auto settings = folder_.path() + "/pgbouncer.ini";
  for (int attempt = 0; attempt < 10; ++attempt) {
    port_ = free_port();
    std::ofstream(settings) << "[databases]\n"
                            << database << " = host=" << server.host << " port=" << server.port << " user=" << user
                            << " password=" << password
                            << "\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = " << port_
                            << "\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 3\n";
    std::vector<std::string> command{"/usr/bin/setpriv", "--pdeathsig", "KILL"};
    if (::geteuid() == 0) {  // it refuses to run as root
      command.insert(command.end(), {"--reuid", "nobody", "--regid", "nogroup", "--clear-groups"});
      ::chmod(folder_.path().c_str(), 0711);
    }
    command.insert(command.end(), {program, "-q", settings});
    process_.emplace(command);
    bool ended = false;
    if (eventually([&] { return (ended = !process_->running()) || answers(port_); }) && !ended) return;
    process_.reset();
  }
  throw std::runtime_error("no PgBouncer could be started");
}

}  // namespace dlock::test::postgresql
