// How a connection of the MySQL client library is handed over as a transaction.
#pragma once

#include <dlock/transaction.hpp>

struct st_mysql;  // MYSQL of MariaDB Connector/C's <mysql.h>, which this header does not need

// MYSQL*, with a transaction open on it and no result left to read.
template <>
struct dlock::Adapter<st_mysql*> {
  static TransactionRef view(st_mysql* connection) noexcept { return {"mysql", connection}; }
};
