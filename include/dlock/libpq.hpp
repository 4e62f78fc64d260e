// How libpq's connection is handed over as a transaction.
#pragma once

#include <dlock/transaction.hpp>

struct pg_conn;  // PGconn of <libpq-fe.h>, which this header does not need

// PGconn*, with a transaction open on it and no statement under way. Its settings stay as they are; what it is asked
// runs with libpq's blocking calls.
template <>
struct dlock::Adapter<pg_conn*> {
  static TransactionRef view(pg_conn* connection) noexcept { return {"postgresql", connection}; }
};
