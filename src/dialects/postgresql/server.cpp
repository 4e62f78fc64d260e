// This file knows the URLs of PostgreSQL: every option is libpq's own, and an unknown one is refused.
#include "server.hpp"

#include "types/name.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

namespace dlock::dialects::DLOCK_DIALECT {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(Fault::misuse, what); }

bool known_keyword(const std::string& keyword) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> all(PQconndefaults(), &PQconninfoFree);
  for (auto* option = all.get(); option != nullptr && option->keyword != nullptr; ++option)
    if (keyword == option->keyword) return true;
  return false;
}

void check_port(const std::string& port) {
  int number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc{} || end != port.data() + port.size() || number < 1 || number > 65535)
    refuse(fmt::format("the port {} is not a number from 1 to 65535", in_quotes(port)));
}

void check_sslmode(const std::string& mode) {
  static constexpr std::array<std::string_view, 6> known{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"};
  if (std::find(known.begin(), known.end(), mode) == known.end())
    refuse(fmt::format("the option sslmode={} is unknown; use disable, allow, prefer, require, verify-ca or verify-full",
                       in_quotes(mode)));
}

struct Places {
  std::string hosts, ports;
};

// "host:port,[::1]:port" into libpq's two lists.
Places places_of(std::string_view text) {
  Places places;
  bool first = true;
  for (;;) {
    const auto comma = std::min(text.find(','), text.size());
    auto place = text.substr(0, comma);
    std::string host, port;
    if (place.starts_with('[')) {
      const auto close = place.find(']');
      if (close == std::string_view::npos) refuse(fmt::format("the host {} has no closing bracket", in_quotes(place)));
      host = place.substr(1, close - 1);
      place.remove_prefix(close + 1);
      if (place.starts_with(':')) port = place.substr(1);
    } else {
      const auto colon = std::min(place.find(':'), place.size());
      host = percent_decoded(place.substr(0, colon));
      if (colon < place.size()) port = place.substr(colon + 1);
    }
    if (!port.empty()) check_port(port);
    places.hosts += (first ? "" : ",") + host;
    places.ports += (first ? "" : ",") + port;
    first = false;
    if (comma == text.size()) return places;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

Server server_of(const Url& url, const std::string& application) {
  if (!url.has_authority)
    refuse(fmt::format("the URL {}: must be written {}://user@host/database", url.scheme, url.scheme));
  Server server;
  auto& words = server.keywords;
  const auto places = places_of(url.hosts);
  if (!places.hosts.empty() && places.hosts.find_first_not_of(',') != std::string::npos) words.emplace_back("host", places.hosts);
  if (places.ports.find_first_not_of(',') != std::string::npos) words.emplace_back("port", places.ports);
  if (url.user && !url.user->empty()) words.emplace_back("user", *url.user);
  if (url.password) words.emplace_back("password", *url.password);
  if (url.path.size() > 1) words.emplace_back("dbname", url.path.substr(1));
  words.emplace_back("fallback_application_name", application);
  words.emplace_back("client_encoding", "UTF8");
  for (const auto& [key, value] : url.options) {
    if (!known_keyword(key)) refuse(fmt::format("the option {} of the URL is unknown to libpq", in_quotes(key)));
    if (key == "client_encoding" || key == "replication")
      refuse(fmt::format("the option {} of the URL cannot be chosen here", in_quotes(key)));
    if (key == "sslmode") check_sslmode(value);
    if (key == "port") check_port(value);
    words.emplace_back(key, value);  // the last of a keyword counts
  }
  for (const auto& [key, value] : words) {
    if (key == "user") server.user = value;
    if (key == "password") server.password = value;
  }
  server.target = fmt::format("{}://{}{}{}", url.scheme, server.user.empty() ? "" : server.user + "@", url.hosts, url.path);
  return server;
}

}  // namespace dlock::dialects::DLOCK_DIALECT
