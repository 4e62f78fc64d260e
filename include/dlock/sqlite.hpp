// How an open SQLite database is handed over as a transaction.
#pragma once

#include <dlock/transaction.hpp>

struct sqlite3;

// sqlite3*, with a transaction open on it, best by BEGIN IMMEDIATE. In a deferred transaction the first write can
// fail with conflict.
template <>
struct dlock::Adapter<sqlite3*> {
  static TransactionRef view(sqlite3* database) noexcept { return {"sqlite", database}; }
};
