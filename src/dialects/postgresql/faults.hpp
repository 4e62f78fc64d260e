// This file knows that PostgreSQL's SQLSTATEs have causes.
#pragma once

#include "types/failure.hpp"

#include <string>
#include <string_view>

namespace dlock::dialects::DLOCK_DIALECT {

// The failure behind an SQLSTATE; `text` is the server's primary message, `user` the role it was said to.
Failure failure_of(std::string_view sqlstate, const std::string& text, const std::string& user, bool may_have_run);

// The failure behind a connection that could not be made, of which only libpq's text is known.
Failure connect_failure(const std::string& text, const std::string& user);

}  // namespace dlock::dialects::DLOCK_DIALECT
