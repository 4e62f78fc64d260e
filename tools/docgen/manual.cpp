// The manual pages: troff with the macros of man(7).
#include "docgen.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace dlock::tools::docgen {
namespace {

// A line that says itself, whatever is in it.
std::string escaped(std::string text) {
  text = replaced(std::move(text), "\\", "\\e");
  text = replaced(std::move(text), "-", "\\-");
  text = replaced(std::move(text), "'", "\\(aq");
  text = replaced(std::move(text), "`", "\\(ga");
  text = replaced(std::move(text), "^", "\\(ha");
  text = replaced(std::move(text), "~", "\\(ti");
  return text.starts_with('.') ? "\\&" + text : text;
}

std::string bold(const std::string& text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + escaped(text) + "\\fR"; }

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return text;
}

std::string page_name(const Command& command) { return replaced(command.full_name, " ", "-"); }

// "75   busy" as "75" and "busy": an indented line of a list. An example's comment is none.
std::pair<std::string, std::string> item_of(const std::string& line) {
  const auto gap = line.find("   ", 2);
  const auto text = line.find_first_not_of(' ', gap);
  if (gap == std::string::npos || text == std::string::npos || line[text] == '#') return {};
  return {line.substr(2, gap - 2), line.substr(text)};
}

// Paragraphs; lists; other indented lines as they are.
std::string body(const std::vector<std::string>& lines) {
  std::string result;
  bool fresh = true, verbatim = false;
  for (const auto& line : lines) {
    const auto [key, text] = item_of(line);
    const bool item = line.starts_with("  ") && !key.empty();
    const bool indented = line.starts_with("  ") && !item;
    if (verbatim && !indented) {
      result += ".fi\n.RE\n";
      fresh = true;
    }
    if (line.empty()) {
      fresh = true;
    } else if (item) {
      result += ".TP\n" + bold(key) + "\n" + escaped(text) + "\n";
      fresh = true;
    } else if (indented) {
      if (!verbatim) result += ".PP\n.RS 4\n.nf\n";
      result += escaped(line.substr(2)) + "\n";
    } else {
      if (fresh) result += ".PP\n";
      result += escaped(line) + "\n";
      fresh = false;
    }
    verbatim = indented;
  }
  return verbatim ? result + ".fi\n.RE\n" : result;
}

using Section = std::pair<std::string, std::vector<std::string>>;

// What the manual says, then what --help says below the options. Without a title: the description.
std::vector<Section> sections_of(const Command& command) {
  std::vector<Section> sections{{"", {}}};
  for (const auto& line : lines_of(command.manual)) {
    if (line.starts_with("# ")) sections.emplace_back(line.substr(2), std::vector<std::string>{});
    else sections.back().second.push_back(line);
  }
  const auto named = [&](const std::string& title) {
    return std::find_if(sections.begin(), sections.end(),
                        [&](const Section& section) { return section.first == title; });
  };
  std::string title;
  bool skip = false;
  for (auto line : lines_of(command.footer)) {
    if (line == "Examples:" || line.starts_with("Exit codes:")) {
      title = line == "Examples:" ? "EXAMPLES" : "EXIT STATUS";
      skip = title == "EXIT STATUS" && named(title) != sections.end();  // the manual says it at length
      if (named(title) == sections.end()) sections.emplace_back(title, std::vector<std::string>{});
      line = title == "EXAMPLES" ? "" : line.substr(std::string("Exit codes:").size() + 1);
      if (line.empty()) continue;
    }
    if (skip) continue;
    auto& lines = named(title)->second;
    if (title.empty() && !lines.empty() && !lines.back().empty()) lines.emplace_back();
    lines.push_back(line);
  }
  return sections;
}

std::string option_items(const Command& command, const std::string& group) {
  std::string result;
  for (const auto& option : command.options) {
    if (option.group != group || option.names.back() == "--help") continue;
    std::vector<std::string> names;
    for (const auto& name : option.names) names.push_back(bold(name));
    result += ".TP\n" + joined(names, ", ");
    if (option.value) {
      std::vector<std::string> values;
      for (const auto& word : choices_of(option)) values.push_back(bold(word));
      if (values.empty()) values.push_back(italic(*option.value));
      result += " " + joined(values, "|");
    }
    result += "\n" + escaped(option.help) + "\n";
  }
  return result;
}

std::vector<std::string> groups_of(const Command& command) {
  std::vector<std::string> groups;
  for (const auto& option : command.options)
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  return groups;
}

std::string page(const Command& tool, const Command& command) {
  const bool whole = &tool == &command;
  const auto name = page_name(command);
  auto text = fmt::format(".\\\" made from the command line of {}\n.TH {} 1 \"\" \"{} {}\" \"{}\"\n", tool.name,
                          escaped(upper(name)), tool.name, tool.version, tool.name);
  text += ".SH NAME\n" + escaped(name) + " \\- " + escaped(command.description) + "\n.SH SYNOPSIS\n.nf\n";
  for (const auto& usage : command.usage) text += escaped(usage) + "\n";
  text += ".fi\n";
  const auto sections = sections_of(command);
  if (const auto& description = sections.front().second; !description.empty())
    text += ".SH DESCRIPTION\n" + body(description);
  if (whole) {
    text += ".SH COMMANDS\n";
    for (const auto& each : command.commands) {
      text +=
          fmt::format(".TP\n{}\n{}: see {}(1)\n", bold(each.name), escaped(each.description), bold(page_name(each)));
    }
  }
  text += ".SH OPTIONS\n";
  for (const auto& argument : command.arguments)
    if (!argument.help.empty()) text += ".TP\n" + italic(argument.name) + "\n" + escaped(argument.help) + "\n";
  if (whole) {
    for (const auto& group : groups_of(command)) text += ".SS " + escaped(group) + "\n" + option_items(command, group);
  } else {
    for (const auto& group : groups_of(command)) text += option_items(command, group);
    text += fmt::format(".PP\nThe options of every command, such as {} {}, are in {}(1).\n", bold("-u"), italic("URL"),
                        bold(tool.name));
  }
  for (const auto& [title, lines] : sections)
    if (!title.empty()) text += ".SH " + escaped(title) + "\n" + body(lines);
  std::vector<std::string> others;
  if (!whole) others.push_back(tool.name);
  for (const auto& each : tool.commands)
    if (whole || each.name != command.name) others.push_back(page_name(each));
  for (auto& other : others) other = bold(other) + "(1)";
  return text + ".SH SEE ALSO\n" + joined(others, ",\n") + "\n";
}

}  // namespace

void add_manual(const Command& tool, Files& files) {
  files["man/man1/" + page_name(tool) + ".1"] = page(tool, tool);
  for (const auto& command : tool.commands) files["man/man1/" + page_name(command) + ".1"] = page(tool, command);
}

}  // namespace dlock::tools::docgen
