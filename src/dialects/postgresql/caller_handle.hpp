// How a caller's own connection is asked by libpq, and how it is made to listen again.
#pragma once

#include "dialects/caller_connection.hpp"

#include <libpq-fe.h>

#include <string_view>

namespace dlock::dialects::postgresql {

// Runs statements and reads their answers; that of the last one is answered. Throws Failure.
TextRow ask(PGconn* connection, std::string_view sql);

// In pipeline mode, in which the work may have left the connection, no statement can be waited for. Where there is no
// way out of it the connection goes, and the transaction with it.
void clear_the_way(PGconn* connection) noexcept;

// The connection goes, and the transaction with it: what is sent next fails.
void end(PGconn* connection) noexcept;

}  // namespace dlock::dialects::postgresql
