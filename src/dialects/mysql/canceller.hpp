// A statement on MySQL and MariaDB is killed from a second connection.
#pragma once

#include "connection.hpp"
#include "dialects/canceller.hpp"
#include "server.hpp"

#include <memory>

namespace dlock::dialects::mysql {

// Asks the connection who it is. Throws Failure.
std::unique_ptr<Canceller> make_canceller(const Server& server, ServerConnection& connection, Deadline deadline);

}  // namespace dlock::dialects::mysql
