// Shell patterns: which names they match, whatever the locale of the process.
#pragma once

#include <string>
#include <utility>

namespace dlock::engine {

// The part of a shell pattern that every match begins with.
inline std::string literal_prefix(const std::string& glob) { return glob.substr(0, glob.find_first_of("*?[\\")); }

// As fnmatch(3) does where characters are UTF-8: "?" is one of them. Threads: any.
bool matches(const std::string& glob, const std::string& name);

// The names that match a pattern.
struct Scope {
  explicit Scope(std::string pattern) : glob(std::move(pattern)), prefix(literal_prefix(glob)) {}
  bool has(const std::string& name) const { return matches(glob, name); }
  const std::string glob, prefix;
};

}  // namespace dlock::engine
