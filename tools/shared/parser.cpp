// How CLI11 is asked.
#include "tools/shared/parser.hpp"

#include "tools/shared/command_line.hpp"
#include "tools/shared/usage.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dlock::tools {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

using Made = std::map<const Option*, CLI::Option*>;

// Nothing for the option that shows the page, which every App has.
CLI::Option* add(CLI::App& app, const Option& option) {
  const auto names = joined(option.names, ",");
  const Overloaded add_to_app{[](const ShowHelp&) -> CLI::Option* { return nullptr; },
                              [&](const ShowVersion& version) { return app.set_version_flag(names, version.text); },
                              [&](bool* given) { return app.add_flag(names, *given); },
                              [&](std::string* text) { return app.add_option(names, *text); },
                              [&](std::optional<std::string>* text) {
                                return app.add_option_function<std::string>(
                                    names, [text](const std::string& given) { *text = given; });
                              },
                              [&](std::vector<std::string>* texts) {
                                // One value each time: what follows it is a word of its own.
                                if (names.starts_with('-'))
                                  return app.add_option(names, *texts)->allow_extra_args(false);
                                // The first of an argument; CLI11 would read "{}" as none, and "[a,b]" as two.
                                return app.add_option_function<std::string>(
                                    names, [texts](const std::string& given) { texts->push_back(given); });
                              }};
  return std::visit(add_to_app, option.target);
}

void add_all(CLI::App& app, const std::list<Option>& options, Made& made) {
  for (const auto& option : options) {
    auto* const added = add(app, option);
    if (added == nullptr) continue;
    if (option.takes_value()) added->type_name(option.value);
    added->required(option.required);
    made[&option] = added;
  }
  for (const auto& option : options)
    if (option.excludes != nullptr) made.at(&option)->excludes(made.at(option.excludes));
}

void fill(CLI::App& app, const Command& command, Made& made) {
  add_all(app, command.arguments(), made);
  add_all(app, command.options(), made);
  for (const auto& each : command.commands()) fill(*app.add_subcommand(each.name()), each, made);
}

// Not an option.
bool is_value(const std::string& word) { return word.size() < 2 || word.front() != '-' || word == "--"; }

Parsed parsed(CLI::App& app, const std::vector<std::string>& words) {
  using As = Parsed::As;
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // it takes them last to first
    return {};
  } catch (const CLI::CallForHelp&) { return {As::help_wanted}; } catch (const CLI::CallForVersion& version) {
    return {As::version_wanted, version.what()};
  } catch (const CLI::ExtrasError&) {
    return {As::with_unexpected, {}, app.remaining(true)};
  } catch (const CLI::RequiredError& error) {
    // What is missing may be there, behind an option that is none.
    auto unknown = app.remaining(true);
    if (!std::all_of(unknown.begin(), unknown.end(), is_value)) return {As::with_unexpected, {}, std::move(unknown)};
    return {As::refused, error.what()};
  } catch (const CLI::ParseError& error) { return {As::refused, error.what()}; }
}

// What of the words that nothing takes is more values of the argument that may be repeated, is taken out.
void repeat_argument(const Command* command, std::vector<std::string>& words) {
  if (command == nullptr || command->arguments().empty()) return;
  const auto& last = command->arguments().back();
  if (!last.repeatable() || last.once) return;
  auto& values = *std::get<std::vector<std::string>*>(last.target);
  std::copy_if(words.begin(), words.end(), std::back_inserter(values), is_value);
  std::erase_if(words, is_value);
}

}  // namespace

Parsed parse(Command& tool, const std::vector<std::string>& words) {
  CLI::App app({}, tool.name());
  app.require_subcommand(0, 1);
  app.fallthrough();
  Made made;
  fill(app, tool, made);
  auto result = parsed(app, words);
  for (auto& command : tool.commands())
    if (app.got_subcommand(command.name())) command.set_parsed();
  if (result.as == Parsed::As::with_unexpected) repeat_argument(tool.chosen(), result.unexpected);
  if (result.as == Parsed::As::with_unexpected && result.unexpected.empty()) return {};
  return result;
}

}  // namespace dlock::tools
