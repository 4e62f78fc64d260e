// This file knows what is done with a line that was understood, and said of one that was not.
#include "tools/shared/tool.hpp"

#include "tools/shared/command_line.hpp"
#include "tools/shared/console.hpp"
#include "tools/shared/description.hpp"
#include "tools/shared/help.hpp"
#include "tools/shared/json.hpp"
#include "tools/shared/parser.hpp"
#include "tools/shared/suggestion.hpp"
#include "tools/shared/usage.hpp"

#include <dlock/error.hpp>

#include <iostream>

namespace dlock::tools {
namespace {

int refuse(Console& console, const Refusal& refusal, int usage_code) {
  console.error(Exit::usage, refusal.message, refusal.hint);
  return usage_code;
}

int show(const std::string& text) {
  std::cout << text << std::flush;
  return number(Exit::ok);
}

int run(Console& console, Command& tool, const std::vector<std::string>& words, const std::function<int()>& body,
        int usage_code) {
  const auto& description = add_description_command(tool);
  const auto parsed = parse(tool, words);
  const auto* command = tool.chosen();
  switch (parsed.as) {
    case Parsed::As::help_wanted: return show(help_page(command == nullptr ? tool : *command));
    case Parsed::As::version_wanted: return show(parsed.text + "\n");
    case Parsed::As::with_unexpected: return refuse(console, explain_unexpected(tool, parsed.unexpected), usage_code);
    case Parsed::As::refused: return refuse(console, explain_refused(tool, parsed.text), usage_code);
    case Parsed::As::order: break;
  }
  console.settle();
  if (!description.parsed()) return body();
  console.result(described(tool));
  return number(Exit::ok);
}

}  // namespace

int run_tool(Console& console, Command& tool, const std::vector<std::string>& words, const std::function<int()>& body,
             int usage_code) {
  // A wrong option may stand before --format was understood; json() is then still false unless it was settled.
  try {
    return run(console, tool, words, body, usage_code);
  } catch (const UsageError& error) {
    console.error(Exit::usage, error.what());
    return usage_code;
  } catch (const Error& error) {
    const auto code = exit_code(error.fault());
    console.error(code, error.what());
    return code == Exit::usage ? usage_code : number(code);
  } catch (const std::exception& error) {
    return console.error(Exit::database, error.what());
  }
}

}  // namespace dlock::tools
