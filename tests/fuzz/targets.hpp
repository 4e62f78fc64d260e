// The parsers that are fed with anything.
#pragma once

#include <string_view>

namespace dlock::fuzz {

// Each returns, whatever the text; it ends the process if a promise of the parser is broken.
void url(std::string_view text);
void duration(std::string_view text);
void name(std::string_view text);
void migration(std::string_view text);

// Ends the process unless it is true.
void insist(bool promise) noexcept;

}  // namespace dlock::fuzz
