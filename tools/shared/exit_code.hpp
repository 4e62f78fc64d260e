// The exit codes that dlock and dlock-migrate share.
#pragma once

#include <dlock/error.hpp>

#include <string_view>

namespace dlock::tools {

enum class Exit : int {
  ok = 0,
  database = 1,      // a database error
  usage = 2,         // a wrong argument, option, URL or environment value
  pending = 3,       // dlock-migrate: there are pending migrations
  no = 3,            // dlock: not held, not found, wrong token
  drift = 4,         // checksum or structure differs
  interrupted = 5,   // a version is failed or interrupted
  locked = 6,        // another migrator is at work, or a lock for DDL was not obtained
  incompatible = 7,  // the schema is missing or does not fit this binary
  unreachable = 8,
  permission = 9,
  busy = 75,
};

constexpr int number(Exit code) noexcept { return static_cast<int>(code); }

// The word for the "code" of a JSON error.
std::string_view word(Exit code) noexcept;

// What a fault of the library means as an exit code.
Exit exit_code(Fault fault) noexcept;

}  // namespace dlock::tools
