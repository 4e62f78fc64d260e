// How an engine notifies on MySQL and MariaDB.
#pragma once

#include "dialects/listener.hpp"
#include "server.hpp"

#include <memory>
#include <string>

namespace dlock::dialects::mysql {

// Null if `engine` is not one. `table` is TableNames::channel().
std::unique_ptr<ReleaseSignal> make_release_signal(const Server& server, std::string_view engine,
                                                   const std::string& table);

}  // namespace dlock::dialects::mysql
