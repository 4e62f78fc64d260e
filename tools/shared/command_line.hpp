// A command line: the commands of a tool, their options and arguments, and what their pages say.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dlock::tools {

// What is done where an option is given: the page is shown, the version is shown, or what was given is stored. A value
// that was left out is told apart by an optional; a vector takes it each time it is given, anything else once.
struct ShowHelp {};
struct ShowVersion {
  std::string text;
};
using Target =
    std::variant<ShowHelp, ShowVersion, bool*, std::string*, std::optional<std::string>*, std::vector<std::string>*>;

// An option, a flag or an argument of a command, with what the parser and the pages must know of it.
struct Option {
  std::vector<std::string> names;  // "-u", "--url", short ones first; of an argument its only name, without dashes
  std::string value;               // what its value is called on the pages; empty for a flag, and for an argument
  std::string help;
  std::string group;  // the headline it stands under
  Target target;
  bool required = false;
  bool rare = false;                 // the page that fits a screen only names it
  const Option* excludes = nullptr;  // cannot be given together with that one
  bool once = false;                 // of an argument that is repeatable: on this line it is not

  bool takes_value() const;
  bool repeatable() const;
  // What messages call it: its first long name, or else its first name.
  const std::string& name() const;
};

// A command of a tool, or the tool itself. Made of its options and commands, then parsed into once (parser.hpp).
// Threads: one. Owns: its options and commands, which stay where they are; not the values they store into.
class Command {
 public:
  // A tool. Every command has -h and --help.
  Command(std::string_view name, std::string_view description);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  Command& add_command(std::string_view name, std::string_view description);
  // One that no page shows.
  Command& add_hidden_command(std::string_view name, std::string_view description);

  // What is added from here on stands under this headline on the page of the tool ("Options").
  void begin_group(std::string_view title) { group_ = title; }
  // `names`: "-u,--url". `value`: FILE, or the words it may be, divided by "|", or any other name.
  Option& add_option(std::string_view names, std::string_view value, std::string& text, std::string_view help);
  Option& add_option(std::string_view names, std::string_view value, std::optional<std::string>& text,
                     std::string_view help);
  Option& add_option(std::string_view names, std::string_view value, std::vector<std::string>& texts,
                     std::string_view help);
  Option& add_flag(std::string_view names, bool& given, std::string_view help);
  Option& add_version_flag(std::string_view names, std::string_view version, std::string_view help);
  // Without help it is on no page but in the line that shows the usage.
  Option& add_argument(std::string_view name, std::string& text, std::string_view help = {});
  Option& add_argument(std::string_view name, std::vector<std::string>& texts, std::string_view help = {});

  // What is shown below the options and in the manual: prose, whose lines are one paragraph, and indented lines, which
  // are shown as they are; then perhaps "Exit codes: …", and "Examples:" with indented lines.
  void set_footer(std::string_view text);
  // Each way to call it; without: made of its arguments.
  void set_usage(std::vector<std::string> ways) { usage_ = std::move(ways); }
  // For the manual only: paragraphs, divided by empty lines; indented lines are shown as they are; "# TITLE" begins a
  // section.
  void set_manual(std::string_view text) { manual_ = text; }
  // After parsing: it stood on the line.
  void set_parsed() noexcept { parsed_ = true; }

  const std::string& name() const noexcept { return name_; }
  const std::string& description() const noexcept { return description_; }
  const std::string& footer() const noexcept { return footer_; }
  const std::string& manual() const noexcept { return manual_; }
  const std::vector<std::string>& usage() const noexcept { return usage_; }
  const std::list<Option>& options() const noexcept { return options_; }
  const std::list<Option>& arguments() const noexcept { return arguments_; }
  const std::list<Command>& commands() const noexcept { return commands_; }
  std::list<Command>& commands() noexcept { return commands_; }
  bool hidden() const noexcept { return hidden_; }
  bool parsed() const noexcept { return parsed_; }

  const Command& tool() const noexcept { return parent_ == nullptr ? *this : parent_->tool(); }
  // "dlock run", from the tool on.
  std::string full_name() const;
  // Those that the pages show.
  std::vector<const Command*> shown_commands() const;
  // The command that stood on the line, or nothing.
  const Command* chosen() const;

 private:
  Option& add(std::string_view names, std::string_view value, Target target, std::string_view help);

  const Command* parent_ = nullptr;
  std::string name_, description_, footer_, manual_, group_ = "Options";
  std::vector<std::string> usage_;
  std::list<Option> options_, arguments_;
  std::list<Command> commands_;
  bool hidden_ = false, parsed_ = false;
};

}  // namespace dlock::tools
