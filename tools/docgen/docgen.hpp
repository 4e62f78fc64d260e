// What is made from the description of a command line: manual pages and completions.
#pragma once

#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::tools::docgen {

// What a tool says of itself (describe-cli).
struct Option {
  std::vector<std::string> names;    // "-u", "--url"
  std::optional<std::string> value;  // what it is called; none: it takes none
  bool required = false, repeatable = false;
  std::string group, help;

  bool operator==(const Option&) const = default;
};

struct Argument {
  std::string name, help;
  bool repeatable = false;
};

// A command, or the tool, which alone has commands.
struct Command {
  std::string name, full_name, version, description, footer, manual;
  std::vector<std::string> usage;
  std::vector<Argument> arguments;
  std::vector<Option> options;
  std::vector<Command> commands;
};

// Throws std::exception if it is no description.
Command read_description(std::istream& json);

// Path below share/ -> text.
using Files = std::map<std::string, std::string>;

// A page for the tool, and one for each of its commands.
void add_manual(const Command& tool, Files& files);
void add_bash_completion(const Command& tool, Files& files);
void add_zsh_completion(const Command& tool, Files& files);
void add_fish_completion(const Command& tool, Files& files);

// The words that an option takes, if its value is written "text|json"; else none.
std::vector<std::string> choices_of(const Option& option);
bool is_file(const Option& option);
// Whether a command line of its own follows "--".
bool takes_command(const Command& command);

std::vector<std::string> lines_of(std::string_view text);
std::string replaced(std::string text, std::string_view what, std::string_view by);
std::string joined(const std::vector<std::string>& words, std::string_view between);

}  // namespace dlock::tools::docgen
