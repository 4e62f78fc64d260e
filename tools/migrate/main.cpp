// How dlock-migrate begins and ends, and what its manual says of exit codes and of the environment.
#include "tools/migrate/commands.hpp"
#include "tools/shared/arguments.hpp"
#include "tools/shared/command_line.hpp"
#include "tools/shared/console.hpp"
#include "tools/shared/tool.hpp"

namespace {

void tell_of_itself(dlock::tools::Command& tool) {
  tool.set_footer(
      "Examples:\n"
      "  dlock-migrate up   # the database: -u URL, or DLOCK_MIGRATE_URL");
  tool.set_manual(
      R"(Many may run it at once, and it may be killed anywhere: a plain up afterwards finishes the job. The runtime
never changes the schema by itself. The database is named by -u URL, by -e NAME (a variable), or by a variable
below.

Durations are written 500ms, 30s, 5m, 2h, 1d; a bare number is seconds, fractions are allowed.
# EXIT STATUS
  0   done, or nothing to do, or the check passed
  1   database error, or the result could not be written
  2   usage or configuration
  3   pending migrations; of check and status also that another migrator is at work
  4   drift: a checksum or the structure differs
  5   a version was interrupted, or has failed
  6   another migrator is at work, a lock for DDL was not obtained, or leases are live (down)
  7   the schema does not fit this binary
  8   the database is unreachable
  9   permission denied
  130, 143   stopped by a signal
# ENVIRONMENT
  DLOCK_MIGRATE_URL   the database, if neither -u nor -e is given: past a pooler, for example
  DLOCK_URL           the same, if DLOCK_MIGRATE_URL is not set
  NO_COLOR            if not empty: no colours)");
}

}  // namespace

int main(int argc, char** argv) {
  using namespace dlock::tools;
  fill_standard_streams();
  const auto arguments = take_arguments(argc, argv);
  Console console("dlock-migrate");
  Command tool("dlock-migrate", "Makes, upgrades and checks the lock table of dlock.");
  console.add_to(tool);
  migrate::Commands commands(tool);
  tell_of_itself(tool);
  if (arguments.cut) return console.error(Exit::usage, "there is nothing to be said after \"--\"", "see --help");
  return run_tool(console, tool, arguments.words, [&] { return commands.run(console); });
}
