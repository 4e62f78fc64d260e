// How far apart two words are, and how far is too far.
#include "tools/shared/suggestion.hpp"

#include "tools/shared/command_line.hpp"
#include "tools/shared/help.hpp"
#include "tools/shared/usage.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace dlock::tools {
namespace {

constexpr std::size_t longest_word = 64, most_suggestions = 3;

// The command that was chosen, or the tool itself.
const Command& chosen(const Command& tool) {
  const auto* command = tool.chosen();
  return command == nullptr ? tool : *command;
}

void add_options(const Command& command, std::vector<std::string>& names) {
  for (const auto& option : command.options()) names.insert(names.end(), option.names.begin(), option.names.end());
}

std::vector<std::string> commands_of(const Command& tool) {
  std::vector<std::string> names;
  for (const auto* each : tool.shown_commands()) names.push_back(each->name());
  return names;
}

std::string as_hint(const std::vector<std::string>& words, const Command& command) {
  const auto help = fmt::format("see {} --help", command.full_name());
  return words.empty() ? help : fmt::format("did you mean {}? {}", joined(words, " or "), help);
}

}  // namespace

std::size_t distance(std::string_view one, std::string_view other) {
  one = one.substr(0, longest_word);
  other = other.substr(0, longest_word);
  std::vector<std::vector<std::size_t>> costs(one.size() + 1, std::vector<std::size_t>(other.size() + 1));
  for (std::size_t i = 0; i <= one.size(); ++i) {
    for (std::size_t j = 0; j <= other.size(); ++j) {
      if (i == 0 || j == 0) {
        costs[i][j] = i + j;
        continue;
      }
      const std::size_t differs = one[i - 1] == other[j - 1] ? 0 : 1;
      costs[i][j] = std::min({costs[i - 1][j] + 1, costs[i][j - 1] + 1, costs[i - 1][j - 1] + differs});
      if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1])
        costs[i][j] = std::min(costs[i][j], costs[i - 2][j - 2] + 1);
    }
  }
  return costs[one.size()][other.size()];
}

std::vector<std::string> nearest(std::string_view typed, const std::vector<std::string>& known) {
  std::vector<std::string> found;
  const auto bare = typed.substr(std::min(typed.find_first_not_of('-'), typed.size()));
  auto best = std::max<std::size_t>(1, bare.size() / 3);
  for (const auto& word : known) {
    const bool begun = bare.size() >= 2 && word.starts_with(typed);
    const bool short_one = word.size() <= 2 || bare.size() < 2;  // any two of those are near
    if (short_one && !begun) continue;
    const auto far = begun ? 0 : distance(typed, word);
    if (far > best) continue;
    if (far < best) found.clear();
    best = far;
    if (found.size() < most_suggestions) found.push_back(word);
  }
  return found;
}

Refusal explain_unexpected(const Command& tool, const std::vector<std::string>& words) {
  const auto& command = chosen(tool);
  const auto is_option = [](const std::string& word) { return word.size() > 1 && word.front() == '-'; };
  const auto option = std::find_if(words.begin(), words.end(), is_option);
  const bool of_another = option != words.begin() && &command != &tool;  // it stands behind a word that is one too many
  if (option != words.end() && !of_another) {
    const auto typed = option->substr(0, option->find('='));
    std::vector<std::string> names;
    add_options(command, names);
    if (&command != &tool) add_options(tool, names);
    return {fmt::format("there is no option {}", in_quotes(typed)), as_hint(nearest(typed, names), command)};
  }
  const auto typed = words.empty() ? std::string{} : words.front();
  if (&command != &tool) {
    auto hint = as_hint({}, command);
    // Whoever knows other tools of this kind may not know of the dashes.
    const auto ways = usage_of(command);
    if (!ways.empty() && ways.front().find(" -- ") != std::string::npos)
      hint = "what is to be run is written after --, as in: " + ways.front() + "; " + hint;
    return {fmt::format("{} is one word too many", in_quotes(typed)), std::move(hint)};
  }
  return {fmt::format("there is no command {}", in_quotes(typed)), as_hint(nearest(typed, commands_of(tool)), tool)};
}

Refusal explain_missing(const Command& tool) {
  return {fmt::format("no command is given: write one of {}", joined(commands_of(tool), ", ")), as_hint({}, tool)};
}

Refusal explain_refused(const Command& tool, const std::string& why) {
  const auto& command = chosen(tool);
  auto message = why;
  // The parser's own words for an option at the end of the line.
  constexpr std::string_view required = ": 1 required ", missing = " missing";
  if (const auto at = why.find(required); at != std::string::npos && why.ends_with(missing)) {
    const auto kind = why.substr(at + required.size(), why.size() - at - required.size() - missing.size());
    message = fmt::format("{} needs a value: {}", why.substr(0, at), kind);
  }
  const auto add_help = [&](const Option& option) {
    if (why == option.name() + " is required" && !option.help.empty()) message += ": " + option.help;
  };
  std::for_each(command.arguments().begin(), command.arguments().end(), add_help);
  std::for_each(command.options().begin(), command.options().end(), add_help);
  return {std::move(message), as_hint({}, command)};
}

}  // namespace dlock::tools
