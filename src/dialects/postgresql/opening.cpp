// This file knows libpq's way of connecting without blocking, and what it says when it cannot.
#include "opening.hpp"

#include "faults.hpp"
#include "waiting.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

namespace dlock::dialects::DLOCK_DIALECT {
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
  Handle connection(PQconnectStartParams(keywords.data(), values.data(), 0));
  if (!connection) throw Failure(Cause::refused, "PostgreSQL: out of memory");
  // Only this way does libpq tell the SQLSTATE of a refusal, which means the same in every language.
  PQsetErrorVerbosity(connection.get(), PQERRORS_VERBOSE);
  const auto refused = [&] {
    const char* user = PQuser(connection.get());
    return connect_failure(without_password(PQerrorMessage(connection.get()), server), user == nullptr ? "" : user,
                           PQconnectionNeedsPassword(connection.get()) != 0);
  };
  if (PQstatus(connection.get()) == CONNECTION_BAD) throw refused();
  for (auto state = PGRES_POLLING_WRITING; state != PGRES_POLLING_OK; state = PQconnectPoll(connection.get())) {
    if (state == PGRES_POLLING_FAILED) throw refused();
    if (!wait_for(connection.get(), state == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline)) {
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

}  // namespace

std::string server_name(const PGconn* connection) {
  const char* version = PQparameterStatus(connection, "server_version");
  const std::string text = version == nullptr ? "" : version;
  return "PostgreSQL " + text.substr(0, text.find(' '));
}

Handle open_connection(const Server& server, Deadline deadline) {
  std::string tried;
  for (std::size_t i = 0; i < server.places.size(); ++i) {
    const auto now = BootClock::now();
    auto until = deadline;
    if (deadline != Deadline::max())
      until = now + (deadline - now) / static_cast<BootClock::rep>(server.places.size() - i);
    if (server.connect_timeout) until = std::min(until, later(now, *server.connect_timeout));
    try {
      return open_at(server, server.places[i], until);
    } catch (const Failure& failure) {
      // Like libpq: a server that answers and says no has the last word.
      if (failure.cause() != Cause::refused) throw;
      if (i + 1 == server.places.size() && tried.empty()) throw;
      tried += (tried.empty() ? "" : "; ") + std::string(failure.what());
    }
  }
  throw Failure(Cause::refused, tried);
}

}  // namespace dlock::dialects::DLOCK_DIALECT
