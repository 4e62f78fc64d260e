// This file knows how an engine rings on MySQL and MariaDB.
#pragma once

#include "dialects/bell.hpp"
#include "server.hpp"

#include <memory>
#include <string>

namespace dlock::dialects::DLOCK_DIALECT {

// Null if `engine` is not one. `table` is TableNames::bell().
std::unique_ptr<Ringer> make_ringer(const Server& server, std::string_view engine, const std::string& table);

}  // namespace dlock::dialects::DLOCK_DIALECT
