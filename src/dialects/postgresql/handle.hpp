// This file knows who frees what libpq makes.
#pragma once

#include <libpq-fe.h>

#include <memory>

namespace dlock::dialects::DLOCK_DIALECT {

struct Finish {
  void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
};
using Handle = std::unique_ptr<PGconn, Finish>;

struct Clear {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using Result = std::unique_ptr<PGresult, Clear>;

}  // namespace dlock::dialects::DLOCK_DIALECT
