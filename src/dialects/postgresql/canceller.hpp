// A statement on PostgreSQL is cancelled by a request of its own.
#pragma once

#include "connection.hpp"
#include "dialects/canceller.hpp"

#include <memory>

namespace dlock::dialects::postgresql {

std::unique_ptr<Canceller> make_canceller(const ServerConnection& connection);

}  // namespace dlock::dialects::postgresql
