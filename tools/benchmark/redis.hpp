// A Redis server can take part, where dlock-bench was built with hiredis.
#pragma once

#include "contender.hpp"

#include <string>
#include <vector>

namespace bench {

// SET NX PX, and a script that compares and deletes. Throws UsageError where that is not possible.
Contender redis_contender(const Field& field);

// What its server is and whether it keeps what it said: "Redis 7.0.15, appendonly no".
std::string redis_setup(const std::string& where);

}  // namespace bench
