// How releases are heard on MySQL and MariaDB: by waiting for a named lock of the holder's engine.
#pragma once

#include "dialects/listener.hpp"
#include "dialects/statement.hpp"
#include "server.hpp"

#include <memory>

namespace dlock::dialects::mysql {

// Null in a cluster. Throws Failure.
std::unique_ptr<Listener> open_listener(const Server& server, const TableNames& names, Deadline deadline);

}  // namespace dlock::dialects::mysql
