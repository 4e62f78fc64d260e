// The command line of dlock-bench.
#include "plot.hpp"
#include "scenarios.hpp"

#include "tools/shared/arguments.hpp"
#include "tools/shared/command_line.hpp"
#include "tools/shared/connection.hpp"
#include "tools/shared/console.hpp"
#include "tools/shared/tool.hpp"

#include <algorithm>

namespace {

void tell_of_itself(dlock::tools::Command& tool) {
  tool.set_manual(
      R"(Each scenario prints what it measured, with the settings that decide whether a commit survives a crash; --json
prints an object, --plot draws it. Rows named dlock-bench/... are written into the lock table; renew, shared,
scale and reap make tables dlock_bench_... of their own and take them away. What a run that was killed leaves
behind, the next one takes away. The database is named by -u URL, by -e NAME (a variable), or by a variable
below.
# EXIT STATUS
  0   measured
  1   database error; or something was seen that must not be
  2   usage or configuration
  7   the schema is missing, or does not fit this binary
  8   the database is unreachable
  9   permission denied
# ENVIRONMENT
  DLOCK_URL   the database, if neither -u nor -e is given
  NO_COLOR    if not empty: no colours)");
}

}  // namespace

int main(int argc, char** argv) {
  using namespace dlock::tools;
  fill_standard_streams();
  const auto arguments = take_arguments(argc, argv);
  Console console("dlock-bench");
  Command tool("dlock-bench", "Measures dlock on your own database.");
  bench::Common common;
  tool.add_option("--seconds", "D", common.seconds, "how long to measure");
  tool.add_option("--plot", "FILE.svg", common.plot, "draws the result, with gnuplot");
  tool.add_flag("--json", common.json, "the same as --format json");
  ConnectionOptions connection;
  connection.add_to(tool);
  console.add_to(tool);
  tool.set_footer(
      "--seconds is 10s, 60s for handoff, 5s for herd and reap; --plot needs gnuplot.\n"
      "Examples:\n"
      "  dlock-bench pair --against raw -u sqlite:app.db");
  tell_of_itself(tool);
  const auto scenarios = bench::add_scenarios(tool);
  return run_tool(console, tool, arguments.words, [&] {
    bench::Order order{{}, common, console};
    order.target = {connection.url({"DLOCK_URL"}), connection.schema(),          connection.table(),
                    connection.history_table(),    connection.connect_timeout(), console.quiet()};
    if (!common.plot.empty()) bench::check_plotting(common.plot);
    return std::find_if(scenarios.begin(), scenarios.end(), [](const auto& s) { return s.command->parsed(); })
        ->run(order);
  });
}
