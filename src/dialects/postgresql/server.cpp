// Reads the URLs of PostgreSQL: every option is libpq's own, and an unknown one is refused; which hosts are meant, also
// by libpq's environment, and that of several it is the one that takes writes.
#include "server.hpp"

#include "faults.hpp"
#include "handle.hpp"
#include "types/name.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <system_error>

namespace dlock::dialects::postgresql {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(Fault::misuse, what); }

bool known_keyword(const std::string& keyword) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> all(PQconninfoParse("", nullptr), &PQconninfoFree);
  for (auto* option = all.get(); option != nullptr && option->keyword != nullptr; ++option)
    if (keyword == option->keyword) return true;
  return false;
}

std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

void check_port(std::string_view port) {
  const auto number = whole_number(port);
  if (!number || *number < 1 || *number > 65535)
    refuse(fmt::format("the port {} is not a number from 1 to 65535", in_quotes(port)));
}

void check_sslmode(std::string_view mode) {
  static constexpr std::array<std::string_view, 6> known{"disable", "allow",     "prefer",
                                                         "require", "verify-ca", "verify-full"};
  if (std::find(known.begin(), known.end(), mode) == known.end())
    refuse(
        fmt::format("the option sslmode={} is unknown; use disable, allow, prefer, require, verify-ca or "
                    "verify-full",
                    in_quotes(mode)));
}

std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto comma = std::min(list.find(','), list.size());
    parts.push_back(list.substr(0, comma));
    if (comma == list.size()) return parts;
    list.remove_prefix(comma + 1);
  }
}

// The value libpq would take: the last one that is not empty.
std::string value_of(const Keywords& keywords, std::string_view key) {
  const auto found = std::find_if(keywords.rbegin(), keywords.rend(),
                                  [&](const auto& word) { return word.first == key && !word.second.empty(); });
  return found == keywords.rend() ? std::string{} : found->second;
}

// "host:port,[::1]:port" as libpq's two lists.
void add_hosts(std::string_view text, Keywords& keywords) {
  std::string hosts, ports;
  for (auto place : parts_of(text)) {
    std::string_view host, port;
    if (place.starts_with('[')) {
      const auto close = place.find(']');
      if (close == std::string_view::npos) refuse(fmt::format("the host {} has no closing bracket", in_quotes(place)));
      host = place.substr(1, close - 1);
      port = place.substr(close + 1);
      if (!port.empty() && !port.starts_with(':'))
        refuse(fmt::format("the host {} goes on after its bracket", in_quotes(place)));
    } else {
      const auto colon = std::min(place.find(':'), place.size());
      host = place.substr(0, colon);
      port = place.substr(colon);
    }
    if (!port.empty()) port.remove_prefix(1);
    if (!port.empty()) check_port(port);
    hosts += percent_decoded(host) + ',';
    ports += std::string(port) + ',';
  }
  hosts.pop_back();
  ports.pop_back();
  if (hosts.find_first_not_of(',') != std::string::npos) keywords.emplace_back("host", hosts);
  if (ports.find_first_not_of(',') != std::string::npos) keywords.emplace_back("port", ports);
}

void add_option(const std::string& key, const std::string& value, Keywords& keywords) {
  static constexpr std::array<std::string_view, 6> numbers{"connect_timeout",  "keepalives",
                                                           "keepalives_idle",  "keepalives_interval",
                                                           "keepalives_count", "tcp_user_timeout"};
  if (!known_keyword(key)) refuse(fmt::format("the option {} of the URL is unknown to libpq", in_quotes(key)));
  if (key == "client_encoding" || key == "replication")
    refuse(fmt::format("the option {} of the URL cannot be chosen here", in_quotes(key)));
  if (std::find(numbers.begin(), numbers.end(), key) != numbers.end() && !whole_number(value))
    refuse(fmt::format("the option {}={} of the URL is not a whole number", key, in_quotes(value)));
  if (key == "sslmode") check_sslmode(value);
  if (key == "port")
    for (const auto port : parts_of(value))
      if (!port.empty()) check_port(port);
  keywords.emplace_back(key, value);
}

bool descriptor_left() {
  const int descriptor = ::eventfd(0, EFD_CLOEXEC);
  if (descriptor >= 0) ::close(descriptor);
  return descriptor >= 0;
}

// libpq checks its keywords, its environment variables and its files when it is told to connect. The host cannot be
// there, so that with nothing wrong the attempt ends with it, and nothing is sent anywhere.
void check_by_connecting(const Keywords& keywords) {
  static constexpr std::string_view nowhere = "/dev/null/dlock";
  const auto named = value_of(keywords, value_of(keywords, "hostaddr").empty() ? "host" : "hostaddr");
  std::string hosts(nowhere);
  for (std::size_t more = parts_of(named).size() - 1; more > 0; --more) hosts += fmt::format(",{}", nowhere);
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : keywords) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  // Last, and so instead of what was named; a list of ports belongs to hosts that the environment may name.
  keys.insert(keys.end(), {"host", "hostaddr"});
  values.insert(values.end(), 2, hosts.c_str());
  if (named.empty()) {
    keys.push_back("port");
    values.push_back("5432");
  }
  keys.push_back(nullptr);
  values.push_back(nullptr);
  const auto connection = start_connection(keys.data(), values.data());
  const std::string_view text = connection ? PQerrorMessage(connection.get()) : "";
  if (text.empty() || text.find(nowhere) != std::string_view::npos) return;
  if (!descriptor_left())
    throw Error(Fault::unavailable, "no descriptor is left to connect with: " + std::generic_category().message(errno));
  refuse(fmt::format("the PostgreSQL URL, or libpq's environment, cannot be used: {}", in_one_line(text)));
}

// Where libpq would go by its environment and its files, if anywhere but to the socket on this machine.
Keywords place_in_environment(const Keywords& keywords) {
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : keywords) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  // So it reads all there is to read, and ends before it looks for a server.
  keys.insert(keys.end(), {"sslmode", nullptr});
  values.insert(values.end(), {"none at all", nullptr});
  const auto connection = start_connection(keys.data(), values.data());
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> all(PQconninfo(connection.get()), &PQconninfoFree);
  Keywords found;
  bool named = false;
  for (auto* option = all.get(); option != nullptr && option->keyword != nullptr; ++option) {
    const std::string_view key = option->keyword;
    if (option->val == nullptr || *option->val == '\0') continue;
    if (key != "host" && key != "hostaddr" && key != "port") continue;
    named = named || key != "port";
    found.emplace_back(key, option->val);
  }
  return named ? found : Keywords{};
}

// One list of host, hostaddr and port for each of several hosts; empty: the socket on this machine.
std::vector<Keywords> places_of(const Keywords& keywords) {
  const auto host = value_of(keywords, "host"), hostaddr = value_of(keywords, "hostaddr"),
             port = value_of(keywords, "port");
  if (host.empty() && hostaddr.empty()) return {port.empty() ? Keywords{} : Keywords{{"port", port}}};
  const auto hosts = parts_of(host), addresses = parts_of(hostaddr), ports = parts_of(port);
  if (!host.empty() && !hostaddr.empty() && hosts.size() != addresses.size())
    refuse(fmt::format("the URL has {} hosts and {} of hostaddr", hosts.size(), addresses.size()));
  std::vector<Keywords> places(std::max(hosts.size(), addresses.size()));
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!host.empty()) places[i].emplace_back("host", hosts[i]);
    if (!hostaddr.empty()) places[i].emplace_back("hostaddr", addresses[i]);
    if (!port.empty()) places[i].emplace_back("port", ports.size() == 1 ? ports[0] : ports[i]);
  }
  return places;
}

}  // namespace

Server server_of(const Url& url, const std::string& application) {
  if (!url.has_authority)
    refuse(fmt::format("the URL {}: must be written {}://user@host/database", url.scheme, url.scheme));
  Server server;
  auto& words = server.keywords;
  add_hosts(url.hosts, words);
  if (url.user && !url.user->empty()) words.emplace_back("user", *url.user);
  if (url.password) words.emplace_back("password", *url.password);
  if (url.path.size() > 1) words.emplace_back("dbname", url.path.substr(1));
  words.emplace_back("fallback_application_name", application);
  words.emplace_back("client_encoding", "UTF8");
  for (const auto& [key, value] : url.options) add_option(key, value, words);
  check_by_connecting(words);

  const bool named = !value_of(words, "host").empty() || !value_of(words, "hostaddr").empty();
  const auto elsewhere = named ? Keywords{} : place_in_environment(words);
  server.places = places_of(elsewhere.empty() ? words : elsewhere);
  std::erase_if(
      words, [](const auto& word) { return word.first == "host" || word.first == "hostaddr" || word.first == "port"; });
  // Of several hosts the one that takes writes is meant: on a standby nobody can lock anything.
  if (server.places.size() > 1 && value_of(words, "target_session_attrs").empty())
    words.emplace_back("target_session_attrs", "read-write");
  if (const auto seconds = whole_number(value_of(words, "connect_timeout")); seconds && *seconds > 0)
    server.connect_timeout = std::chrono::seconds{*seconds};
  server.password = value_of(words, "password");
  const auto user = value_of(words, "user");
  server.target = fmt::format("{}://{}{}{}", url.scheme, user.empty() ? "" : user + "@", url.hosts, url.path);
  return server;
}

}  // namespace dlock::dialects::postgresql
