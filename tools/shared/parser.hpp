// What becomes of the words of a command line. CLI11 is behind it, and nowhere else.
#pragma once

#include <string>
#include <vector>

namespace dlock::tools {

class Command;

// What the words are.
struct Parsed {
  enum class As { order, help_wanted, version_wanted, with_unexpected, refused };
  As as = As::order;
  std::string text{};                     // version_wanted: the version; refused: why, in the parser's words
  std::vector<std::string> unexpected{};  // with_unexpected: the words that nothing takes
};

// Stores what was given where the options say, and tells the command that stood there so; the latter also of a line
// that is not understood. There may be one command, and behind it options of the tool.
Parsed parse(Command& tool, const std::vector<std::string>& words);

}  // namespace dlock::tools
