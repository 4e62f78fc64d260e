// How texts are hashed.
#pragma once

#include <string>
#include <string_view>

namespace dlock {

// SHA-256 as 64 hexadecimal digits.
std::string sha256(std::string_view text);

// "s1:" and the SHA-256 of the text as it is on every machine: without a byte order mark, with LF at the end of every
// line, and without blanks there or empty lines at the end. Names are still placeholders. Never to be changed: the
// prefix names the way, so that another one can be added beside it.
std::string checksum(std::string_view text);

}  // namespace dlock
