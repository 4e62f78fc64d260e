// This file knows the command line of dlock-bench.
#include "report.hpp"

#include "tools/shared/arguments.hpp"
#include "tools/shared/connection.hpp"
#include "tools/shared/console.hpp"
#include "tools/shared/usage.hpp"

#include <cstdio>

int main(int argc, char** argv) {
  using namespace dlock::tools;
  const auto arguments = take_arguments(argc, argv);
  Console console("dlock-bench");
  CLI::App app{"Measures dlock on your own database.\n\nExample: dlock-bench pair --against raw -u sqlite:app.db"};
  app.require_subcommand(1);
  app.fallthrough();
  ConnectionOptions connection;
  connection.add_to(app);
  console.add_to(app);
  std::string seconds = "10s", against;
  bool json = false;
  app.add_option("--seconds", seconds, "how long to measure, all contenders together (default 10s)");
  app.add_flag("--json", json, "the same as --format json");
  auto* pair = app.add_subcommand("pair", "one client, one uncontended name: acquire and release, again and again");
  pair->add_option("--against", against, "raw: the same prepared statements through the plain client library");
  return run_tool(console, app, arguments.words, [&] {
    if (!against.empty() && against != "raw")
      throw UsageError("--against " + in_quotes(against) + " is unknown; the only peer is raw");
    bench::Options options;
    options.url = connection.url({"DLOCK_URL"});
    options.table = connection.table();
    options.seconds = std::chrono::duration<double>(parse_positive_duration("--seconds", seconds)).count();
    options.raw = !against.empty();
    auto result = bench::run_pair(options);
    const auto report = json || console.json() ? bench::as_json(options, result) : bench::as_text(options, result);
    std::fputs(report.c_str(), stdout);
    return number(Exit::ok);
  });
}
