// How a connection to a server is opened.
#pragma once

#include "handle.hpp"
#include "server.hpp"
#include "types/clock.hpp"

#include <string>

namespace dlock::dialects::postgresql {

// Tries the server's hosts one after another, each for its share of the time that is left, so that one that is silent
// does not use up all of it. The connection does not block. Throws Failure: refused, permission or rejected, and
// none of them with the password in its text.
Handle open_connection(const Server& server, Deadline deadline);

// Product and version, as a person would write them: "PostgreSQL 15.18".
std::string server_name(const PGconn* connection);

}  // namespace dlock::dialects::postgresql
