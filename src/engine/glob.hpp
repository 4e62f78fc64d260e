// This file knows what the beginning of a shell pattern says.
#pragma once

#include <string>

namespace dlock::engine {

// The part of a shell pattern that every match begins with.
inline std::string literal_prefix(const std::string& glob) { return glob.substr(0, glob.find_first_of("*?[\\")); }

}  // namespace dlock::engine
