// How a soci::session is handed over as a transaction: by the connection of its backend.
//
// A backend can be used where its client library's header is found at compile time (<libpq-fe.h>, <mysql.h>,
// <sqlite3.h>); handing over a session of another one throws misuse.
#pragma once

#include <dlock/error.hpp>
#include <dlock/transaction.hpp>

#include <soci/soci.h>

#if __has_include(<libpq-fe.h>) && __has_include(<soci/postgresql/soci-postgresql.h>)
#include <soci/postgresql/soci-postgresql.h>
#define DLOCK_SOCI_POSTGRESQL 1
#endif

#if __has_include(<mysql.h>) && __has_include(<soci/mysql/soci-mysql.h>)
#include <soci/mysql/soci-mysql.h>
#define DLOCK_SOCI_MYSQL 1
#endif

#if __has_include(<sqlite3.h>) && __has_include(<soci/sqlite3/soci-sqlite3.h>)
#ifndef SOCI_SQLITE3_H_INCLUDED
// SOCI includes <sqlite3.h> inside a namespace of its own, which takes it away from everybody who includes it later,
// and fails for everybody who did before.
#include <sqlite3.h>
namespace sqlite_api {
using ::sqlite3;
using ::sqlite3_destructor_type;
using ::sqlite3_int64;
using ::sqlite3_stmt;
}  // namespace sqlite_api
#include <soci/sqlite3/soci-sqlite3.h>
#endif
#define DLOCK_SOCI_SQLITE 1
#endif

#include <string>

// soci::session, with a transaction open on it (soci::transaction, or a statement that begins one).
template <>
struct dlock::Adapter<soci::session> {
  static TransactionRef view(soci::session& session) {
    const std::string backend = session.get_backend_name();
#ifdef DLOCK_SOCI_POSTGRESQL
    if (backend == "postgresql")
      return {"postgresql", static_cast<soci::postgresql_session_backend*>(session.get_backend())->conn_};
#endif
#ifdef DLOCK_SOCI_MYSQL
    if (backend == "mysql") return {"mysql", static_cast<soci::mysql_session_backend*>(session.get_backend())->conn_};
#endif
#ifdef DLOCK_SOCI_SQLITE
    if (backend == "sqlite3")
      return {"sqlite", static_cast<soci::sqlite3_session_backend*>(session.get_backend())->conn_};
#endif
    throw Error(Fault::misuse,
                "the SOCI backend \"" + backend +
                    "\" cannot be handed over: <dlock/soci.hpp> was compiled without its client library");
  }
};
