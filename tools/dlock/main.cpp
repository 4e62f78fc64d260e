// How dlock begins and ends, what its manual says, and with which code it ends where the words are wrong.
#include "history.hpp"
#include "lock_commands.hpp"
#include "queue.hpp"
#include "reap.hpp"
#include "remove.hpp"
#include "run.hpp"
#include "top.hpp"

#include "tools/shared/arguments.hpp"
#include "tools/shared/command_line.hpp"
#include "tools/shared/connection.hpp"
#include "tools/shared/console.hpp"
#include "tools/shared/tool.hpp"
#include "tools/shared/usage.hpp"

#include <algorithm>

namespace {

constexpr int run_failed = 125;

// The code for wrong arguments depends on the command, which is known before they are understood.
int usage_code(const dlock::tools::Command& tool, const std::vector<std::string>& words) {
  for (const auto& word : words)
    for (const auto& command : tool.commands())
      if (command.name() == word) return word == "run" ? run_failed : dlock::tools::number(dlock::tools::Exit::usage);
  return dlock::tools::number(dlock::tools::Exit::usage);
}

void tell_of_itself(dlock::tools::Command& tool) {
  tool.set_footer(
      "Examples:\n"
      "  dlock run -n nightly -- ./report.sh   # DLOCK_URL names the database\n"
      "  dlock list");
  tool.set_manual(
      R"(The locks are rows of one table, resource_lock, which dlock-migrate(1) makes. The database is named by -u URL,
by -e NAME (a variable), or by DLOCK_URL:

  scheme://user:password@host:port/database?option=value
  scheme:PATH

A password need not stand there: it may come from --password-file, --password-stdin, -W, or from where the
client library of the database looks for it. It is never printed, and a URL given as an argument is wiped from
the list of processes.

Durations are written 500ms, 30s, 5m, 2h, 1d; a bare number is seconds, fractions are allowed.

Results go to standard output, everything else to standard error. With --format json results are one object
each, and errors {"error": {"code", "message", "hint"}}.
# EXIT STATUS
  0       ok
  1       database error, a deadlock, or the result could not be written
  2       usage or configuration
  3       no: not held, not found, wrong token
  7       the schema is missing or does not fit this binary; or no history is kept
  8       the database is unreachable, or something keeps the table locked
  9       permission denied
  75      busy, or timed out waiting
  128+n   ended by signal n

dlock run has exit codes of its own, see dlock-run(1).
# ENVIRONMENT
  DLOCK_URL   the database, if neither -u nor -e is given
  NO_COLOR    if not empty: no colours)");
}

}  // namespace

int main(int argc, char** argv) {
  using namespace dlock::tools;
  fill_standard_streams();
  auto arguments = take_arguments(argc, argv);
  Console console("dlock", true);
  Command tool("dlock", "Locks in the SQL database that is already there.");
  ConnectionOptions connection;
  connection.add_to(tool);
  console.add_to(tool);
  Run run(tool, arguments);
  Single single(tool);
  const History history(tool);
  const Queue queue(tool);
  const Reap reap(tool);
  const Remove remove(tool);
  const Top top(tool);
  tell_of_itself(tool);
  // Only run has a command behind it; elsewhere what follows is no option, whatever it begins with.
  const auto chosen = std::find_if(arguments.words.begin(), arguments.words.end(), [&](const std::string& word) {
    return std::any_of(tool.commands().begin(), tool.commands().end(),
                       [&](const Command& command) { return command.name() == word; });
  });
  if (arguments.cut && chosen != arguments.words.end() && *chosen != "run") {
    arguments.words.emplace_back("--");
    arguments.words.insert(arguments.words.end(), arguments.command.begin(), arguments.command.end());
    arguments.cut = false;
  }
  return run_tool(
      console, tool, arguments.words,
      [&] {
        if (run.chosen()) return run(connection, console, arguments);
        if (arguments.cut) throw UsageError("only run takes a command after --");
        if (history.chosen()) return history(connection, console);
        if (queue.chosen()) return queue(connection, console);
        if (reap.chosen()) return reap(connection, console);
        if (remove.chosen()) return remove(connection, console);
        if (top.chosen()) return top(connection, console);
        return single(connection, console);
      },
      usage_code(tool, arguments.words));
}
