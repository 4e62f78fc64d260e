// How releases are heard on PostgreSQL: LISTEN, on a connection of its own.
#pragma once

#include "dialects/listener.hpp"
#include "dialects/statement.hpp"
#include "server.hpp"

#include <memory>

namespace dlock::dialects::postgresql {

// Null where notifications do not come through, as behind a pooler that lends connections by the transaction.
// Throws Failure.
std::unique_ptr<Listener> open_listener(const Server& server, const TableNames& names, Deadline deadline);

}  // namespace dlock::dialects::postgresql
