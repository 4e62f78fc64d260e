// What a client shows of its password to a server that has no TLS.
#include "connection.hpp"
#include "server.hpp"

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <thread>

using namespace dlock;
using namespace std::chrono_literals;
using dlock::dialects::mysql::Server;
using dlock::dialects::mysql::server_of;
using dlock::dialects::mysql::ServerConnection;
using namespace std::string_literals;

namespace {

constexpr std::string_view secret = "open-sesame";

std::string packet(int number, const std::string& body) {
  return std::string{static_cast<char>(body.size()), '\0', '\0', static_cast<char>(number)} + body;
}

// "Initial Handshake Packet" of the MySQL manual, of a server without TLS.
std::string greeting(const std::string& plugin) {
  constexpr unsigned capabilities = 0x8A20F;  // all that a login needs, plugins among it
  const auto two = [](unsigned number) {
    return std::string{static_cast<char>(number), static_cast<char>(number >> 8U)};
  };
  return packet(0, "\x0A"s + "9.9.9\0"s + "\1\0\0\0"s + "12345678"s + "\0"s + two(capabilities & 0xFFFFU) + "\x2D"s +
                       two(2) + two(capabilities >> 16U) + "\x15"s + std::string(10, '\0') + "901234567890\0"s +
                       plugin + "\0"s);
}

// A server for one connection: it greets, answers the login with one packet, and keeps whatever it is told.
class SpyingServer {
 public:
  SpyingServer(std::string plugin, std::string answer) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    REQUIRE(::bind(listener_, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(::listen(listener_, 1) == 0);
    REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    port_ = ntohs(at.sin_port);
    thread_ = std::jthread([this, plugin = std::move(plugin), answer = std::move(answer)] { serve(plugin, answer); });
  }
  ~SpyingServer() { ::close(listener_); }
  SpyingServer(const SpyingServer&) = delete;
  SpyingServer& operator=(const SpyingServer&) = delete;

  std::string url(const std::string& options) const {
    return "mysql://app:" + std::string(secret) + "@127.0.0.1:" + std::to_string(port_) + "/db" + options;
  }
  // What it was told until the client hung up.
  std::string heard() {
    thread_.join();
    return heard_;
  }

 private:
  void serve(const std::string& plugin, const std::string& answer) {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const auto say = [&](const std::string& what) { ::send(client, what.data(), what.size(), MSG_NOSIGNAL); };
    const timeval patience{5, 0};
    ::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    say(greeting(plugin));
    std::array<char, 4096> buffer;
    for (int turn = 0;; ++turn) {
      const auto count = ::recv(client, buffer.data(), buffer.size(), 0);
      if (count <= 0) break;
      heard_.append(buffer.data(), static_cast<std::size_t>(count));
      if (turn > 0) break;
      say(answer);
    }
    ::close(client);
  }

  const int listener_;
  unsigned port_ = 0;
  std::string heard_;
  std::jthread thread_;
};

Failure failure_of_login(const std::string& url) {
  try {
    const ServerConnection connection(server_of(Url::parse(url), "test"), {}, later(BootClock::now(), 20s));
  } catch (const Failure& failure) { return failure; }
  return {Cause::rejected, "it was let in"};
}

}  // namespace

TEST_CASE("a server without TLS that asks for the password is asked for its public key") {
  for (const std::string options :
       {"", "?ssl-mode=DISABLED", "?ssl-mode=PREFERRED&ssl-ca=/etc/hosts", "?ssl-mode=DISABLED&ssl-ca=/etc/hosts"}) {
    CAPTURE(options);
    SpyingServer server("caching_sha2_password", packet(2, "\1\4"));
    failure_of_login(server.url(options));
    const auto heard = server.heard();
    CHECK(heard.find("app") != std::string::npos);
    CHECK(heard.find(secret) == std::string::npos);
    CHECK(heard.ends_with(packet(3, "\2")));
  }
}

TEST_CASE("a login that would show the password to the network is refused, and the remedy named") {
  for (const std::string plugin : {"mysql_clear_password", "dialog"})
    for (const bool at_once : {false, true}) {
      CAPTURE(plugin);
      SpyingServer server(at_once ? plugin : "mysql_native_password",
                          packet(2, "\xFE"s + plugin + "\0"s + "Password: "s));
      const auto failure = failure_of_login(server.url(""));
      CHECK(server.heard().find(secret) == std::string::npos);
      CHECK(failure.cause() == Cause::permission);
      CHECK_MESSAGE(std::string_view(failure.what()).find("TLS") != std::string_view::npos, failure.what());
    }
}

TEST_CASE("who asks for TLS says nothing to a server without it") {
  SpyingServer server("caching_sha2_password", {});
  CHECK(failure_of_login(server.url("?ssl-mode=REQUIRED")).cause() == Cause::rejected);
  CHECK(server.heard().empty());
}
