// This file knows the command line of dlock-bench.
#include "page.hpp"
#include "plot.hpp"
#include "scenarios.hpp"

#include "tools/shared/arguments.hpp"
#include "tools/shared/connection.hpp"
#include "tools/shared/console.hpp"

#include <algorithm>

int main(int argc, char** argv) {
  using namespace dlock::tools;
  const auto arguments = take_arguments(argc, argv);
  Console console("dlock-bench");
  CLI::App app{"Usage: dlock-bench SCENARIO [OPTIONS]. Measures dlock on your own database."};
  bench::use_small_pages(app);
  app.require_subcommand(1);
  app.fallthrough();
  bench::Common common;
  app.add_option("--seconds", common.seconds, "how long to measure")->type_name("D");
  app.add_option("--plot", common.plot, "draws the result, with gnuplot")->type_name("FILE.svg");
  app.add_flag("--json", common.json, "the same as --format json");
  ConnectionOptions connection;
  connection.add_to(app);
  console.add_to(app);
  app.footer("--seconds is 10s for most scenarios, 60s for handoff, 5s for herd and reap.\n"
             "--plot draws the result with gnuplot.  More: dlock-bench SCENARIO --help\n"
             "Example: dlock-bench pair --against raw -u sqlite:app.db");
  const auto scenarios = bench::add_scenarios(app);
  return run_tool(console, app, arguments.words, [&] {
    bench::Order order{{}, common, console};
    order.target = {connection.url({"DLOCK_URL"}), connection.schema(),          connection.table(),
                    connection.history_table(),    connection.connect_timeout(), console.quiet()};
    if (!common.plot.empty()) bench::check_plotting(common.plot);
    return std::find_if(scenarios.begin(), scenarios.end(), [](const auto& s) { return s.command->parsed(); })->run(order);
  });
}
