// This file knows how far apart two words are, and how far is too far.
#include "tools/shared/suggestion.hpp"

#include "tools/shared/help.hpp"
#include "tools/shared/usage.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace dlock::tools {
namespace {

constexpr std::size_t longest_word = 64, most_suggestions = 3;

// The command that was chosen, or the tool itself.
const CLI::App& chosen(const CLI::App& app) {
  const auto commands = app.get_subcommands([](const CLI::App* command) { return command->parsed(); });
  return commands.empty() ? app : *commands.front();
}

void add_options(const CLI::App& app, std::vector<std::string>& names) {
  for (const auto* option : options_of(app))
    for (auto& name : names_of(*option)) names.push_back(std::move(name));
}

std::string as_hint(const std::vector<std::string>& words, const CLI::App& command) {
  const auto help = fmt::format("see {} --help", full_name(command));
  return words.empty() ? help : fmt::format("did you mean {}? {}", fmt::join(words, " or "), help);
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

Refusal explain_unexpected(const CLI::App& app) {
  const auto& command = chosen(app);
  const auto words = app.remaining(true);
  const auto is_option = [](const std::string& word) { return word.size() > 1 && word.front() == '-'; };
  const auto option = std::find_if(words.begin(), words.end(), is_option);
  const bool of_another = option != words.begin() && &command != &app;  // it stands behind a word that is one too many
  if (option != words.end() && !of_another) {
    const auto typed = option->substr(0, option->find('='));
    std::vector<std::string> names;
    add_options(command, names);
    if (&command != &app) add_options(app, names);
    return {fmt::format("there is no option {}", in_quotes(typed)), as_hint(nearest(typed, names), command)};
  }
  const auto typed = words.empty() ? std::string{} : words.front();
  if (&command != &app) {
    auto hint = as_hint({}, command);
    // Whoever knows other tools of this kind may not know of the dashes.
    const auto ways = usage_of(command);
    if (!ways.empty() && ways.front().find(" -- ") != std::string::npos)
      hint = "what is to be run is written after --, as in: " + ways.front() + "; " + hint;
    return {fmt::format("{} is one word too many", in_quotes(typed)), std::move(hint)};
  }
  std::vector<std::string> names;
  for (const auto* each : commands_of(app)) names.push_back(each->get_name());
  return {fmt::format("there is no command {}", in_quotes(typed)), as_hint(nearest(typed, names), app)};
}

Refusal explain_incomplete(const CLI::App& app, const std::string& what) {
  const auto& command = chosen(app);
  auto message = what;
  // The parser's own words for an option at the end of the line.
  constexpr std::string_view required = ": 1 required ", missing = " missing";
  if (const auto at = what.find(required); at != std::string::npos && what.ends_with(missing)) {
    const auto kind = what.substr(at + required.size(), what.size() - at - required.size() - missing.size());
    message = fmt::format("{} needs a value: {}", what.substr(0, at), kind);
  }
  for (const auto* option : command.get_options())
    if (what == option->get_name() + " is required") message += ": " + option->get_description();
  return {std::move(message), as_hint({}, command)};
}

}  // namespace dlock::tools
