// PostgreSQL's SQLSTATEs have causes.
#pragma once

#include "types/failure.hpp"

#include <string>
#include <string_view>

namespace dlock::dialects::postgresql {

// The failure behind an SQLSTATE; `text` is the server's primary message, `user` the role it was said to.
// `sent`: the statement had been sent, so that a connection that ends leaves open what became of it.
Failure failure_of(std::string_view sqlstate, std::string_view text, std::string_view user, bool sent);

// The failure behind a connection that could not be made: libpq's verbose text of it is all there is.
Failure connect_failure(std::string_view text, std::string_view user, bool needs_password);

// libpq's texts can have several lines.
std::string in_one_line(std::string_view text);

}  // namespace dlock::dialects::postgresql
