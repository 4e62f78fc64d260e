// This file knows how dlock begins and ends.
#include "queue.hpp"
#include "reap.hpp"
#include "run.hpp"
#include "single.hpp"

#include "tools/shared/arguments.hpp"
#include "tools/shared/connection.hpp"
#include "tools/shared/console.hpp"
#include "tools/shared/usage.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace {

constexpr int run_failed = 125;

// A connection to the database must not become somebody's standard output.
void fill_standard_descriptors() {
  int descriptor = 0;
  do descriptor = ::open("/dev/null", O_RDWR);
  while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor >= 0) ::close(descriptor);
}

// The code for wrong arguments depends on the command, which is known before they are understood.
int usage_code(const std::vector<std::string>& words) {
  const auto command = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return word == "run" || word == "list" || word == "inspect" || word == "acquire" || word == "renew" || word == "release" ||
           word == "reap" || word == "wait" || word == "graph";
  });
  return command != words.end() && *command == "run" ? run_failed : dlock::tools::number(dlock::tools::Exit::usage);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace dlock::tools;
  fill_standard_descriptors();
  const auto arguments = take_arguments(argc, argv);
  Console console("dlock", true);
  CLI::App app("Locks in the SQL database that is already there.", "dlock");
  app.require_subcommand(0, 1);  // none is refused below, so that a wrong word is named first
  app.fallthrough();
  app.footer("The database is named by -u URL, by -e NAME (a variable), or by DLOCK_URL; its table is made by dlock-migrate up.\n"
             "Exit codes: 0 ok, 1 database error, 2 usage, 3 no, 7 schema, 8 unreachable, 9 permission, 75 busy; run has its own.\n"
             "Example: dlock run -n nightly -- ./report.sh");
  ConnectionOptions connection;
  connection.add_to(app);
  console.add_to(app);
  Run run(app);
  Single single(app);
  const Queue queue(app);
  const Reap reap(app);
  return run_tool(
      console, app, arguments.words,
      [&] {
        if (run.chosen()) return run(connection, console, arguments);
        if (app.get_subcommands().empty())
          throw UsageError("no command is given: write run, list, inspect, acquire, renew, release, wait, graph or reap; see --help");
        if (arguments.cut) throw UsageError("only run takes a command after --");
        if (queue.chosen()) return queue(connection, console);
        if (reap.chosen()) return reap(connection, console);
        return single(connection, console);
      },
      usage_code(arguments.words));
}
