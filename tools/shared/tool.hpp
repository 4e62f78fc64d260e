// How a tool runs: from the words of its command line to its exit code.
#pragma once

#include "tools/shared/exit_code.hpp"

#include <functional>
#include <string>
#include <vector>

namespace dlock::tools {

class Command;
class Console;

// Opens /dev/null for each standard stream that is closed, so that no connection to a database becomes one. What reads
// or writes there fails as before. Before anything else is opened.
void fill_standard_streams() noexcept;

// Parses words (before any "--"), and runs `body`, which returns the exit code. Prints --help and --version, and what
// describe-cli answers; turns every exception into one line, and a result that could not be written into
// Exit::database. A line that is not understood and UsageError end with
// `usage_code`, dlock::Error by its fault.
int run_tool(Console& console, Command& tool, const std::vector<std::string>& words, const std::function<int()>& body,
             int usage_code = number(Exit::usage));

}  // namespace dlock::tools
