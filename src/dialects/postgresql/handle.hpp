// Who frees what libpq makes, and what of libpq a fork() has to wait for: opening and closing go through
// libraries (OpenSSL, Kerberos) that have mutexes of their own.
#pragma once

#include "types/process.hpp"

#include <libpq-fe.h>

#include <memory>

namespace dlock::dialects::postgresql {

struct Finish {
  void operator()(PGconn* connection) const noexcept {
    const ForkLock lock;
    PQfinish(connection);
  }
};
using Handle = std::unique_ptr<PGconn, Finish>;

// PQconnectStartParams of lists that end with a null pointer.
inline Handle start_connection(const char* const* keywords, const char* const* values) {
  const ForkLock lock;
  return Handle(PQconnectStartParams(keywords, values, 0));
}
inline PostgresPollingStatusType go_on_connecting(PGconn* connection) {
  const ForkLock lock;
  return PQconnectPoll(connection);
}

struct Clear {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using Result = std::unique_ptr<PGresult, Clear>;

}  // namespace dlock::dialects::postgresql
