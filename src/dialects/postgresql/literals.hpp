// How arguments are written into the text of a statement where they cannot be bound.
#pragma once

#include "types/row.hpp"

#include <string>

namespace dlock::dialects::postgresql {

// A text as bytes in hexadecimal digits: whatever the client's encoding and standard_conforming_strings say.
void append_literal(std::string& sql, const Argument& argument);

}  // namespace dlock::dialects::postgresql
