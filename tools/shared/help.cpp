// How options and commands are put into columns.
#include "tools/shared/help.hpp"

#include "tools/shared/command_line.hpp"
#include "tools/shared/usage.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace dlock::tools {
namespace {

constexpr std::size_t page_width = 80, widest_left = 27;

using Row = std::pair<std::string, std::string>;

// Letters as a terminal counts them: continuation bytes of UTF-8 take no room.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// `text` in lines of the page, all but the first indented.
std::string wrapped(std::string_view text, std::size_t first, std::size_t indent) {
  std::string result;
  std::size_t column = first;
  bool fresh = true;
  while (!text.empty()) {
    const auto word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!fresh && column + 1 + width(word) > page_width) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
      fresh = true;
    }
    if (!fresh) {
      result += ' ';
      ++column;
    }
    result += word;
    column += width(word);
    fresh = false;
  }
  return result;
}

std::string in_columns(const std::vector<Row>& rows) {
  std::size_t left = 0;
  for (const auto& [name, help] : rows)
    if (width(name) <= widest_left) left = std::max(left, width(name));
  std::string result;
  for (const auto& [name, help] : rows) {
    const auto gap = std::max(left + 4, width(name) + 4) - width(name) - 2;
    result += "  " + name + std::string(gap, ' ') + wrapped(help, 2 + width(name) + gap, left + 4) + "\n";
  }
  return result;
}

std::string name_and_value(const Option& option) {
  const auto names = joined(option.names, ", ");
  return option.takes_value() ? names + " " + option.value : names;
}

std::vector<Row> rows_of(const Command& command) {
  std::vector<Row> rows;
  for (const auto& argument : command.arguments())
    if (!argument.help.empty()) rows.emplace_back(argument.name(), argument.help);
  for (const auto& option : command.options())
    if (!std::holds_alternative<ShowHelp>(option.target) && !option.rare)
      rows.emplace_back(name_and_value(option), option.help);
  return rows;
}

// Those that are only named, in a line; empty without any.
std::string rare_options(const Command& command) {
  std::string text;
  for (const auto& option : command.options())
    if (option.rare) text += (text.empty() ? "Rarer: " : ", ") + name_and_value(option);
  return text.empty() ? text : wrapped(text, 0, 0) + "\n";
}

// The options all commands have: what they are called, a group after the other.
std::string common_options(const Command& tool) {
  std::vector<Row> groups;
  for (const auto& option : tool.options()) {
    const auto title = option.group + ":";
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Row& row) { return row.first == title; });
    if (group == groups.end()) group = groups.insert(groups.end(), Row{title, ""});
    else group->second += ", ";
    auto names = joined(option.names, "|");
    if (option.takes_value()) names += "\x1f" + option.value;  // no end of line between them
    group->second += names;
  }
  std::string all;
  for (const auto& [title, names] : groups) all += (all.empty() ? "" : ", ") + names;
  auto text = "  " + wrapped(all, 2, 2) + "\n";
  std::replace(text.begin(), text.end(), '\x1f', ' ');
  return text;
}

// Prose is wrapped, and indented lines stay as they are.
std::string below_options(std::string_view footer) {
  std::string result;
  while (!footer.empty()) {
    const auto line = footer.substr(0, footer.find('\n'));
    footer.remove_prefix(std::min(line.size() + 1, footer.size()));
    result += (line.starts_with(' ') ? std::string(line) : wrapped(line, 0, 0)) + "\n";
  }
  return result;
}

std::string as_title(std::string text) {
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z')
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

}  // namespace

std::vector<std::string> usage_of(const Command& command) {
  if (!command.usage().empty()) return command.usage();
  auto usage = command.full_name() + (command.shown_commands().empty() ? " [OPTIONS]" : " COMMAND [OPTIONS]");
  for (const auto& argument : command.arguments()) {
    const auto name = argument.repeatable() ? argument.name() + "…" : argument.name();
    usage += argument.required ? " " + name : " [" + name + "]";
  }
  for (const auto& option : command.options())
    if (option.required) usage += " " + option.names.back() + " " + option.value;
  return {usage};
}

std::string help_page(const Command& command) {
  std::string result;
  for (const auto& usage : usage_of(command)) result += (result.empty() ? "Usage: " : "       ") + usage + "\n";
  result += wrapped(as_title(command.description()), 0, 0) + "\n";
  const auto commands = command.shown_commands();
  if (commands.empty()) {
    result += in_columns(rows_of(command)) + rare_options(command);
  } else {
    std::vector<Row> rows;
    for (const auto* each : commands) rows.emplace_back(each->name(), each->description());
    result += in_columns(rows) + "Options of every command:\n" + common_options(command);
  }
  result += below_options(command.footer());
  auto page = command.full_name();
  std::replace(page.begin(), page.end(), ' ', '-');
  if (commands.empty())
    result += fmt::format("-u URL and more: {} --help. All of it: man {}\n", command.tool().name(), page);
  else result += fmt::format("More: {} COMMAND --help, man {}\n", command.name(), page);
  return result;
}

}  // namespace dlock::tools
