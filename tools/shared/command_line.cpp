// How a command line is put together.
#include "tools/shared/command_line.hpp"

#include <algorithm>
#include <utility>

namespace dlock::tools {
namespace {

std::vector<std::string> divided(std::string_view names) {
  std::vector<std::string> result;
  while (!names.empty()) {
    const auto name = names.substr(0, names.find(','));
    result.emplace_back(name);
    names.remove_prefix(std::min(name.size() + 1, names.size()));
  }
  return result;
}

}  // namespace

bool Option::takes_value() const {
  return std::holds_alternative<std::string*>(target) || std::holds_alternative<std::optional<std::string>*>(target) ||
         repeatable();
}

bool Option::repeatable() const { return std::holds_alternative<std::vector<std::string>*>(target); }

const std::string& Option::name() const {
  const auto is_long = [](const std::string& name) { return name.starts_with("--"); };
  const auto found = std::find_if(names.begin(), names.end(), is_long);
  return found == names.end() ? names.front() : *found;
}

Command::Command(std::string_view name, std::string_view description) : name_(name), description_(description) {
  add("-h,--help", {}, ShowHelp{}, "this page").group = "Output";
}

Command& Command::add_command(std::string_view name, std::string_view description) {
  auto& command = commands_.emplace_back(name, description);
  command.parent_ = this;
  command.options_.front().group = command.group_;
  return command;
}

Command& Command::add_hidden_command(std::string_view name, std::string_view description) {
  auto& command = add_command(name, description);
  command.hidden_ = true;
  return command;
}

Option& Command::add(std::string_view names, std::string_view value, Target target, std::string_view help) {
  auto& option = options_.emplace_back();
  option.names = divided(names);
  option.value = value;
  option.help = help;
  option.target = std::move(target);
  option.group = group_;
  return option;
}

Option& Command::add_option(std::string_view names, std::string_view value, std::string& text, std::string_view help) {
  return add(names, value, &text, help);
}

Option& Command::add_option(std::string_view names, std::string_view value, std::optional<std::string>& text,
                            std::string_view help) {
  return add(names, value, &text, help);
}

Option& Command::add_option(std::string_view names, std::string_view value, std::vector<std::string>& texts,
                            std::string_view help) {
  return add(names, value, &texts, help);
}

Option& Command::add_flag(std::string_view names, bool& given, std::string_view help) {
  return add(names, {}, &given, help);
}

Option& Command::add_version_flag(std::string_view names, std::string_view version, std::string_view help) {
  return add(names, {}, ShowVersion{std::string(version)}, help);
}

Option& Command::add_argument(std::string_view name, std::string& text, std::string_view help) {
  auto& argument = arguments_.emplace_back();
  argument.names = {std::string(name)};
  argument.help = help;
  argument.target = &text;
  return argument;
}

Option& Command::add_argument(std::string_view name, std::vector<std::string>& texts, std::string_view help) {
  auto& argument = arguments_.emplace_back();
  argument.names = {std::string(name)};
  argument.help = help;
  argument.target = &texts;
  return argument;
}

void Command::set_footer(std::string_view text) {
  footer_.clear();
  bool within = false;  // a paragraph
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const bool prose =
        !line.empty() && !line.starts_with(' ') && line != "Examples:" && !line.starts_with("Exit codes:");
    if (!footer_.empty()) footer_ += within && prose ? ' ' : '\n';
    footer_ += line;
    within = prose;
  }
}

std::string Command::full_name() const { return parent_ == nullptr ? name_ : parent_->full_name() + " " + name_; }

std::vector<const Command*> Command::shown_commands() const {
  std::vector<const Command*> shown;
  for (const auto& command : commands_)
    if (!command.hidden_) shown.push_back(&command);
  return shown;
}

const Command* Command::chosen() const {
  const auto is_parsed = [](const Command& command) { return command.parsed_; };
  const auto found = std::find_if(commands_.begin(), commands_.end(), is_parsed);
  return found == commands_.end() ? nullptr : &*found;
}

}  // namespace dlock::tools
