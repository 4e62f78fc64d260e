// This file knows how dlock-migrate begins and ends.
#include "tools/migrate/commands.hpp"
#include "tools/shared/arguments.hpp"
#include "tools/shared/console.hpp"

int main(int argc, char** argv) {
  using namespace dlock::tools;
  const auto arguments = take_arguments(argc, argv);
  Console console("dlock-migrate");
  CLI::App app("Makes, upgrades and checks the lock table of dlock.", "dlock-migrate");
  console.add_to(app);
  migrate::Commands commands(app);
  if (arguments.cut) return console.error(Exit::usage, "there is nothing to be said after \"--\"", "see --help");
  return run_tool(console, app, arguments.words, [&] { return commands.run(console); });
}
