// What is done with a line that was understood, and said of one that was not.
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

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

namespace dlock::tools {
namespace {

int refuse(Console& console, const Refusal& refusal, int usage_code) {
  console.error(Exit::usage, refusal.message, refusal.hint);
  return usage_code;
}

int show(Console& console, std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  console.result(text);
  return number(Exit::ok);
}

int run(Console& console, Command& tool, const std::vector<std::string>& words, const std::function<int()>& body,
        int usage_code) {
  const auto& description = add_description_command(tool);
  const auto parsed = parse(tool, words);
  if (parsed.as == Parsed::As::with_unexpected || parsed.as == Parsed::As::refused) console.settle_unparsed(words);
  const auto* command = tool.chosen();
  switch (parsed.as) {
    case Parsed::As::help_wanted: return show(console, help_page(command == nullptr ? tool : *command));
    case Parsed::As::version_wanted: return show(console, parsed.text);
    case Parsed::As::with_unexpected: return refuse(console, explain_unexpected(tool, parsed.unexpected), usage_code);
    case Parsed::As::refused: return refuse(console, explain_refused(tool, parsed.text), usage_code);
    case Parsed::As::order: break;
  }
  console.settle();
  if (command == nullptr) return refuse(console, explain_missing(tool), usage_code);
  if (!description.parsed()) return body();
  console.result(described(tool));
  return number(Exit::ok);
}

}  // namespace

void fill_standard_streams() noexcept {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) == -1)  // the lowest descriptor that is free is this one
      static_cast<void>(::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

int run_tool(Console& console, Command& tool, const std::vector<std::string>& words, const std::function<int()>& body,
             int usage_code) {
  try {
    const int code = run(console, tool, words, body, usage_code);
    if (console.unwritten() == 0) return code;
    if (console.unwritten() == EPIPE) return 128 + SIGPIPE;  // as if it had been killed: nobody reads on
    console.error(Exit::database, fmt::format("the result could not be written to standard output: {}",
                                              std::strerror(console.unwritten())));
    return usage_code == number(Exit::usage) ? number(Exit::database) : usage_code;
  } catch (const UsageError& error) {
    console.error(Exit::usage, error.what());
    return usage_code;
  } catch (const Error& error) {
    const auto code = exit_code(error.fault());
    console.error(code, error.what());
    return code == Exit::usage ? usage_code : number(code);
  } catch (const std::exception& error) { return console.error(Exit::database, error.what()); }
}

}  // namespace dlock::tools
