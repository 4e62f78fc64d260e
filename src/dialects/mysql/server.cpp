// The URLs of MySQL and MariaDB: which options there are, which TLS they mean, and what does not go together.
#include "server.hpp"

#include "types/mutant.hpp"
#include "types/name.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace dlock::dialects::mysql {
namespace {

constexpr auto known_options = "socket, ssl-mode, ssl-ca, ssl-cert, ssl-key, charset";

[[noreturn]] void refuse(const std::string& what) { throw Error(Fault::misuse, what); }

unsigned port_of(const std::string& text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 1 || number > 65535)
    refuse(fmt::format("the port {} is not a number from 1 to 65535", in_quotes(text)));
  return number;
}

Tls tls_of(const std::string& text) {
  std::string upper = text;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (upper == "DISABLED") return Tls::disabled;
  if (upper == "PREFERRED") return Tls::preferred;
  if (upper == "REQUIRED") return Tls::required;
  // Connector/C checks chain and name together: the weaker of the two is answered by the stronger.
  if (upper == "VERIFY_CA" && planted("ca_mode_weak")) return Tls::required;
  if (upper == "VERIFY_CA" || upper == "VERIFY_IDENTITY") return Tls::verified;
  refuse(
      fmt::format("the option ssl-mode={} is unknown; use DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY",
                  in_quotes(text)));
}

void read_place(Server& server, std::string_view place) {
  if (place.find(',') != std::string_view::npos)
    refuse(fmt::format("the URL has several hosts, {}; one is possible here", in_quotes(place)));
  std::string_view port;
  if (place.starts_with('[')) {
    const auto close = place.find(']');
    if (close == std::string_view::npos) refuse(fmt::format("the host {} has no closing bracket", in_quotes(place)));
    server.host = place.substr(1, close - 1);
    port = place.substr(close + 1);
    if (!port.empty() && !port.starts_with(':'))
      refuse(fmt::format("the host {} has something after its closing bracket", in_quotes(place)));
  } else {
    const auto colon = std::min(place.find(':'), place.size());
    server.host = percent_decoded(place.substr(0, colon));
    port = place.substr(colon);
  }
  if (!port.empty()) server.port = port_of(std::string(port.substr(1)));
}

}  // namespace

Server server_of(const Url& url, const std::string& application) {
  if (!url.has_authority)
    refuse(fmt::format("the URL {}: must be written {}://user@host/database", url.scheme, url.scheme));
  Server server;
  server.application = application;
  read_place(server, url.hosts);
  server.user = url.user.value_or("");
  server.password = url.password.value_or("");
  if (url.path.size() > 1) server.database = url.path.substr(1);
  if (server.database.find('/') != std::string::npos)
    refuse(fmt::format("the database {} of the URL has a slash in it", in_quotes(server.database)));
  bool chosen = false;
  for (const auto& [key, value] : url.options) {
    if (key == "socket") {
      server.socket = value;
    } else if (key == "ssl-mode") {
      server.tls = tls_of(value);
      chosen = true;
    } else if (key == "ssl-ca") {
      server.ssl_ca = value;
    } else if (key == "ssl-cert") {
      server.ssl_cert = value;
    } else if (key == "ssl-key") {
      server.ssl_key = value;
    } else if (key == "charset") {
      if (value != "utf8mb4")
        refuse(fmt::format("the option charset={} is not possible; only utf8mb4 is", in_quotes(value)));
    } else {
      refuse(
          fmt::format("the option {} of the URL is unknown; {} knows {}", in_quotes(key), url.scheme, known_options));
    }
  }
  // Who names an authority wants the server checked against it.
  if (!chosen && !server.ssl_ca.empty() && !planted("ca_means_nothing")) server.tls = Tls::verified;
  // Without these the client library would choose one of them, and say so to nobody.
  if (!server.socket.empty() && ((!server.host.empty() && server.host != "localhost") || server.port != 0))
    refuse(fmt::format("the URL has both the host {} and the option socket={}; one is possible", in_quotes(url.hosts),
                       in_quotes(server.socket)));
  if (server.tls == Tls::required && (server.host.empty() || !server.socket.empty()))
    refuse(
        "ssl-mode=REQUIRED needs a host in the URL, and no socket: whether TLS is offered is found out on the network, "
        "before anything is sent");
  server.target =
      fmt::format("{}://{}{}{}", url.scheme, server.user.empty() ? "" : server.user + "@", url.hosts, url.path);
  return server;
}

}  // namespace dlock::dialects::mysql
