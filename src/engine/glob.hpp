// Shell patterns: which names they match, whatever the locale of the process.
#pragma once

#include <string>

namespace dlock::engine {

// The part of a shell pattern that every match begins with.
inline std::string literal_prefix(const std::string& glob) { return glob.substr(0, glob.find_first_of("*?[\\")); }

// As fnmatch(3) does where characters are UTF-8: "?" is one of them. Threads: any.
bool matches(const std::string& glob, const std::string& name);

}  // namespace dlock::engine
