// Where the servers of a test run are.
#pragma once

#include <optional>
#include <string>

namespace dlock::test {

// The value of this environment variable, or of the line NAME=VALUE in the files that the servers' fixture has written.
std::optional<std::string> server_url(const std::string& variable);

// Whether the environment itself names the server: somebody has chosen one for the run.
bool server_is_chosen(const std::string& variable);

// A number that no other test case of this machine has now.
std::string unique_suffix();

}  // namespace dlock::test
