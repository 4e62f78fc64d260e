// Connects by libpq's calls that do not block: which host and address is tried, for how long, and after which failure
// none is any more; the oldest server; and that no message shows the password.
#include "opening.hpp"

#include "dialects/readiness.hpp"
#include "faults.hpp"
#include "types/mutant.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

namespace dlock::dialects::postgresql {
namespace {

constexpr int oldest_version = 120000;

// libpq has no reason to repeat a password; should it ever do so, it is not shown. A password that is part of what the
// URL says openly is left alone: a gap in a well-known text would give it away.
std::string without_password(std::string text, const Server& server) {
  if (server.password.empty() || server.target.find(server.password) != std::string::npos) return text;
  for (auto at = text.find(server.password); at != std::string::npos; at = text.find(server.password, at + 3))
    text.replace(at, server.password.size(), "***");
  return text;
}

Handle open_at(const Server& server, const Keywords& place, Deadline deadline) {
  std::vector<const char*> keywords, values;
  for (const auto* list : {&server.keywords, &place})
    for (const auto& [key, value] : *list) {
      keywords.push_back(key.c_str());
      values.push_back(value.c_str());
    }
  keywords.push_back(nullptr);
  values.push_back(nullptr);
  auto connection = start_connection(keywords.data(), values.data());
  if (!connection) throw Failure(Cause::refused, "PostgreSQL: out of memory");
  // Without one libpq prints what a server notes in passing to the program's standard error.
  if (!planted("notices_printed"))
    PQsetNoticeReceiver(
        connection.get(), [](void*, const PGresult*) {}, nullptr);
  // Only this way does libpq tell the SQLSTATE of a refusal, which means the same in every language.
  PQsetErrorVerbosity(connection.get(), PQERRORS_VERBOSE);
  const auto refused = [&] {
    const char* user = PQuser(connection.get());
    return connect_failure(without_password(PQerrorMessage(connection.get()), server), user == nullptr ? "" : user,
                           PQconnectionNeedsPassword(connection.get()) != 0);
  };
  if (PQstatus(connection.get()) == CONNECTION_BAD) throw refused();
  for (auto state = PGRES_POLLING_WRITING; state != PGRES_POLLING_OK; state = go_on_connecting(connection.get())) {
    if (state == PGRES_POLLING_FAILED) throw refused();
    if (wait_until_ready(PQsocket(connection.get()), state == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline) ==
        0) {
      const char *host = PQhost(connection.get()), *port = PQport(connection.get());
      throw Failure(Cause::refused,
                    fmt::format("PostgreSQL: no connection to {} in time (host {}, port {})", server.target,
                                host == nullptr ? "" : host, port == nullptr ? "" : port));
    }
  }
  PQsetErrorVerbosity(connection.get(), PQERRORS_DEFAULT);
  PQsetnonblocking(connection.get(), 1);
  if (PQserverVersion(connection.get()) < oldest_version)
    throw Failure(Cause::rejected,
                  fmt::format("{} is too old: 12 is the oldest supported", server_name(connection.get())));
  return connection;
}

std::string value_of(const Keywords& place, std::string_view key) {
  const auto found = std::find_if(place.begin(), place.end(), [&](const auto& word) { return word.first == key; });
  return found == place.end() ? std::string{} : found->second;
}

// The place once for each address of its host. libpq would look the name up by itself, and block; so it is told the
// address as well, and keeps the name for the certificate and the password file.
std::vector<Keywords> addresses_of(const Server& server, const Keywords& place, const Deadline& deadline) {
  const auto host = value_of(place, "host");
  const bool socket = host.empty() || host.front() == '/' || host.front() == '@';
  if (socket || is_address(host) || !value_of(place, "hostaddr").empty()) return {place};
  std::vector<Keywords> all;
  try {
    for (const auto& address : server.resolver->addresses_of(host, deadline)) {
      all.push_back(place);
      all.back().emplace_back("hostaddr", address);
    }
  } catch (const Failure& failure) {
    throw Failure(failure.cause(), fmt::format("PostgreSQL: no connection to {}: {}", server.target, failure.what()));
  }
  return all;
}

}  // namespace

std::string server_name(const PGconn* connection) {
  const char* version = PQparameterStatus(connection, "server_version");
  const std::string text = version == nullptr ? "" : version;
  return "PostgreSQL " + text.substr(0, text.find(' '));
}

Handle open_connection(const Server& server, Deadline deadline) {
  std::string tried;
  const auto failed = [&](const Failure& failure) {
    // Like libpq: a server that answers and says no has the last word.
    if (failure.cause() != Cause::refused) throw failure;
    tried += (tried.empty() ? "" : "; ") + std::string(failure.what());
  };
  const auto places = server.places.size();
  for (std::size_t i = 0; i < places; ++i) {
    auto until = deadline.share(places - i);
    if (server.connect_timeout) until = until.no_later_than(later(BootClock::now(), *server.connect_timeout));
    std::vector<Keywords> addresses;
    try {
      addresses = addresses_of(server, server.places[i], until);
    } catch (const Failure& failure) { failed(failure); }
    for (std::size_t j = 0; j < addresses.size(); ++j) try {
        return open_at(server, addresses[j], until.share(addresses.size() - j));
      } catch (const Failure& failure) { failed(failure); }
  }
  throw Failure(Cause::refused, tried);
}

}  // namespace dlock::dialects::postgresql
