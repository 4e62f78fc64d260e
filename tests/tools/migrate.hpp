// How a test runs dlock-migrate as a person would.
#pragma once

#include "support/child.hpp"
#include "support/later_versions.hpp"
#include "support/paths.hpp"

#include <string>
#include <vector>

namespace dlock::test {

struct Ran {
  ExitStatus code = exited(0);
  std::string out;  // both streams, in the order they were written
  bool says(std::string_view word) const { return out.find(word) != std::string::npos; }
  // Lines that are not empty.
  int lines() const {
    int count = 0;
    for (std::size_t at = 0; at < out.size();) {
      const auto end = std::min(out.find('\n', at), out.size());
      count += end > at;
      at = end + 1;
    }
    return count;
  }
};

// The program: that of a later dlock while there are LaterVersions.
inline std::string migrate_tool() {
  return LaterVersions::known() ? path::later_migrate() : path::tool("dlock-migrate");
}

// Starts it with both output streams in one pipe.
inline Child migrate_child(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {},
                           const std::string& streams = "2>&1") {
  std::vector<std::string> command{"/bin/sh", "-c", "exec \"$0\" \"$@\" " + streams, migrate_tool()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return Child(command, environment);
}

inline Ran finish(Child& child) {
  Ran ran;
  while (const auto line = child.line()) ran.out += *line + "\n";
  ran.code = child.wait();
  return ran;
}

inline Ran migrate(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {},
                   const std::string& streams = "2>&1 </dev/null") {
  auto child = migrate_child(arguments, environment, streams);
  return finish(child);
}

}  // namespace dlock::test
