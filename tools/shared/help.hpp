// This file knows how --help looks: a page that fits a terminal of 80 columns and 24 lines.
#pragma once

#include <CLI/CLI.hpp>

#include <map>
#include <string>
#include <vector>

namespace dlock::tools {

// What a command's pages say that the parser does not know.
struct PageText {
  std::vector<std::string> usage;  // each way to call it; empty: made of its arguments
  // For the manual page only: paragraphs, divided by empty lines; indented lines are shown as they are; "# TITLE" begins
  // a section.
  std::string manual;
};

// The page of an App and of its commands. Footers are shown on it and in the manual: a line of prose each, then
// "Examples:" with indented lines. An option's value is called FILE, or by the words it may be, divided by "|", or by
// any other name.
// Threads: one.
class HelpPage : public CLI::FormatterBase {
 public:
  // Before the first add_subcommand, which passes it on.
  static void turn_to(CLI::App& app);
  static void tell(CLI::App& app, PageText text);
  static PageText text_of(const CLI::App& app);

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;

 private:
  std::map<const CLI::App*, PageText> texts_;
};

// "dlock run", from the root on.
std::string full_name(const CLI::App& app);

// Those that --help shows, in the order in which they were added.
std::vector<const CLI::App*> commands_of(const CLI::App& app);
std::vector<const CLI::Option*> options_of(const CLI::App& app);    // without arguments
std::vector<const CLI::Option*> arguments_of(const CLI::App& app);
// "-u", "--url", in this order.
std::vector<std::string> names_of(const CLI::Option& option);
bool takes_value(const CLI::Option& option);
// The ways to call a command.
std::vector<std::string> usage_of(const CLI::App& app);

}  // namespace dlock::tools
