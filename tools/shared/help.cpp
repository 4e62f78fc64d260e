// This file knows how options and commands are put into columns.
#include "tools/shared/help.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
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

std::string name_and_value(const CLI::Option& option) {
  std::string result = fmt::format("{}", fmt::join(names_of(option), ", "));
  return takes_value(option) ? result + " " + option.get_type_name() : result;
}

std::vector<Row> rows_of(const CLI::App& app) {
  std::vector<Row> rows;
  for (const auto* argument : arguments_of(app))
    if (!argument->get_description().empty()) rows.emplace_back(argument->get_name(true), argument->get_description());
  for (const auto* option : options_of(app))
    if (option != app.get_help_ptr()) rows.emplace_back(name_and_value(*option), option->get_description());
  return rows;
}

// The options all commands have: what they are called, a group a paragraph.
std::string common_options(const CLI::App& app) {
  std::vector<Row> groups;
  for (const auto* option : options_of(app)) {
    const auto title = option->get_group() + ":";
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Row& row) { return row.first == title; });
    if (group == groups.end()) group = groups.insert(groups.end(), Row{title, ""});
    else group->second += ", ";
    auto names = fmt::format("{}", fmt::join(names_of(*option), "|"));
    if (takes_value(*option)) names += "\x1f" + option->get_type_name();  // no end of line between them
    group->second += names;
  }
  auto text = in_columns(groups);
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

const CLI::App& root_of(const CLI::App& app) { return app.get_parent() == nullptr ? app : root_of(*app.get_parent()); }

std::string as_title(std::string text) {
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z') text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

}  // namespace

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + " " + app.get_name();
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_group().empty() && option->nonpositional(); });
}

std::vector<const CLI::Option*> arguments_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_group().empty() && option->get_positional(); });
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const auto& name : option.get_snames()) names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::vector<std::string> usage_of(const CLI::App& app) {
  if (auto text = HelpPage::text_of(app); !text.usage.empty()) return text.usage;
  auto usage = full_name(app) + (commands_of(app).empty() ? " [OPTIONS]" : " COMMAND [OPTIONS]");
  for (const auto* argument : arguments_of(app))
    usage += fmt::format(fmt::runtime(argument->get_required() ? " {}" : " [{}]"), argument->get_name(true));
  for (const auto* option : options_of(app))
    if (option->get_required()) usage += " " + names_of(*option).back() + " " + option->get_type_name();
  return {usage};
}

void HelpPage::turn_to(CLI::App& app) {
  app.formatter(std::make_shared<HelpPage>());
  app.set_help_flag("-h,--help", "this page")->group("Output");
}

void HelpPage::tell(CLI::App& app, PageText text) {
  if (const auto page = std::dynamic_pointer_cast<HelpPage>(app.get_formatter())) page->texts_[&app] = std::move(text);
}

PageText HelpPage::text_of(const CLI::App& app) {
  const auto page = std::dynamic_pointer_cast<HelpPage>(app.get_formatter());
  if (!page) return {};
  const auto text = page->texts_.find(&app);
  return text == page->texts_.end() ? PageText{} : text->second;
}

std::string HelpPage::make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const {
  std::string result;
  for (const auto& usage : usage_of(*app)) result += (result.empty() ? "Usage: " : "       ") + usage + "\n";
  result += wrapped(as_title(app->get_description()), 0, 0) + "\n";
  const auto commands = commands_of(*app);
  if (commands.empty()) {
    result += in_columns(rows_of(*app));
  } else {
    std::vector<Row> rows;
    for (const auto* command : commands) rows.emplace_back(command->get_name(), command->get_description());
    result += in_columns(rows) + "Options of every command:\n" + common_options(*app);
  }
  result += below_options(app->get_footer());
  auto page = full_name(*app);
  std::replace(page.begin(), page.end(), ' ', '-');
  if (commands.empty()) result += fmt::format("-u URL and more: {} --help. All of it: man {}\n", root_of(*app).get_name(), page);
  else result += fmt::format("More: {} COMMAND --help, man {}\n", app->get_name(), page);
  return result;
}

}  // namespace dlock::tools
