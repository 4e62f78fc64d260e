// Which known word somebody meant who has mistyped it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dlock::tools {

class Command;

// How many letters have to be put in, taken out, replaced or exchanged with their neighbour to come from one to the
// other.
std::size_t distance(std::string_view one, std::string_view other);

// Those of `known` that are nearest to `typed`, or that it begins, if any is near enough; at most three.
std::vector<std::string> nearest(std::string_view typed, const std::vector<std::string>& known);

struct Refusal {
  std::string message, hint;
};
// What is wrong with the words that the parser did not expect.
Refusal explain_unexpected(const Command& tool, const std::vector<std::string>& words);
// What to write on a line that names no command.
Refusal explain_missing(const Command& tool);
// What is wrong with a line that the parser has refused, and says why.
Refusal explain_refused(const Command& tool, const std::string& why);

}  // namespace dlock::tools
