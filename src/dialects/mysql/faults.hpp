// MySQL's and MariaDB's error numbers have causes.
#pragma once

#include "types/failure.hpp"

#include <string>

namespace dlock::dialects::mysql {

// TLS could not be set up, or broke.
inline constexpr unsigned tls_failed = 2026;
// A plugin to log in with that is not among those which may be used.
inline constexpr unsigned password_in_clear = 5010;

// The failure behind an error number; `text` is the server's or the client library's own, `user` the account.
// `may_have_run`: the statement had been sent when the connection broke.
Failure failure_of(unsigned number, const std::string& text, const std::string& user, bool may_have_run);

}  // namespace dlock::dialects::mysql
