// The completion of fish: one line for each option of each command.
#include "docgen.hpp"

#include <fmt/core.h>

namespace dlock::tools::docgen {
namespace {

constexpr auto text = R"(# Completion of {tool} in fish, made from its command line.

# Whether the command on the line is one of these; without any: whether there is none yet.
function {function}_at
  set -l words (commandline -opc)
  set -e words[1]
  set -l skip 0
  for word in $words
    if test $skip = 1
      set skip 0
    else if contains -- $word {with_value}
      set skip 1
    else if not string match -q -- '-*' $word
      contains -- $word $argv
      return
    end
  end
  test (count $argv) = 0
end

complete -c {tool} -f
{lines})";

constexpr auto command_line =
    "complete -c {tool} -n '{function}_at {command}; and contains -- -- (commandline -opc)' -F -a "
    "'(__fish_complete_command)'\n";

std::string quoted(std::string part) {
  return "'" + replaced(replaced(std::move(part), "\\", "\\\\"), "'", "\\'") + "'";
}

std::string names_of(const Option& option) {
  std::string names;
  for (const auto& name : option.names)
    names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  return names;
}

std::string value_of(const Option& option) {
  if (!option.value) return "";
  if (is_file(option)) return " -r -F";
  const auto words = choices_of(option);
  return words.empty() ? " -x" : " -x -a " + quoted(joined(words, " "));
}

}  // namespace

void add_fish_completion(const Command& tool, Files& files) {
  const auto& name = tool.name;
  const auto function = "__fish_" + replaced(name, "-", "_");
  std::string lines;
  std::vector<std::string> with_value;
  const auto add_options = [&](const Command& command, const std::string& condition) {
    for (const auto& option : command.options) {
      if (&command != &tool && option.names.back() == "--help") continue;
      lines += fmt::format("complete -c {}{}{}{} -d {}\n", name, condition, names_of(option), value_of(option),
                           quoted(option.help));
      if (option.value) with_value.insert(with_value.end(), option.names.begin(), option.names.end());
    }
  };
  add_options(tool, "");
  for (const auto& command : tool.commands) {
    const auto& own = command.name;
    lines += fmt::format("complete -c {} -n {}_at -a {} -d {}\n", name, function, own, quoted(command.description));
    add_options(command, fmt::format(" -n '{}_at {}'", function, own));
    if (takes_command(command))
      lines +=
          fmt::format(command_line, fmt::arg("tool", name), fmt::arg("function", function), fmt::arg("command", own));
  }
  files["fish/vendor_completions.d/" + name + ".fish"] =
      fmt::format(text, fmt::arg("tool", name), fmt::arg("function", function),
                  fmt::arg("with_value", joined(with_value, " ")), fmt::arg("lines", lines));
}

}  // namespace dlock::tools::docgen
