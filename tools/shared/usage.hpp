// How a command reads durations and numbers, and refuses its arguments: one line that names the value and the rule, and
// never a password.
#pragma once

#include <dlock/duration.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::tools {

// A wrong argument, option or environment value. what() is the line to print; it never holds a password.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// `text` with every control character as \xNN, so that a name cannot command a terminal.
std::string printable(std::string_view text);

// `text` with *** in the place of the password in every URL: user:password@, or password=….
std::string without_passwords(std::string_view text);

// The words in one line, with `between` between each two.
std::string joined(const std::vector<std::string>& words, std::string_view between);

// `text` in double quotes, printable and short.
std::string in_quotes(std::string_view text);

// "500ms", "30s", "5m", "2h", "1d", also "us", and "1h30m"; a bare number is seconds; of one unit fractions are
// allowed. Not negative.
// `flag` is named in the error.
Duration parse_duration(std::string_view flag, std::string_view text);

// As parse_duration, but 0 is refused too.
Duration parse_positive_duration(std::string_view flag, std::string_view text);

// A whole number from `low` to `high`, decimal digits only.
std::int64_t parse_number(std::string_view flag, std::string_view text, std::int64_t low, std::int64_t high);

// A duration for people: "8.2s", "3m12s", "250ms", "2d4h"; a minus sign in front if it is negative.
std::string shown(Duration duration);

}  // namespace dlock::tools
