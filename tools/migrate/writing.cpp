// This file knows the commands that change the database.
#include "tools/migrate/commands.hpp"
#include "tools/migrate/report.hpp"
#include "tools/migrate/signals.hpp"
#include "tools/shared/usage.hpp"

#include <unistd.h>

#include <iostream>

namespace dlock::tools::migrate {
namespace {

bool confirmed() {
  if (::isatty(STDIN_FILENO) == 0) throw UsageError("down drops tables: off a terminal it needs --yes");
  std::cerr << "dlock-migrate: this drops tables, and forgets the fencing tokens in them. Go on? [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

void warn(Console& console, const Line& line) {
  if (line.no_lock && !line.dry_run)
    console.warning("--no-lock: nothing but the rows of the history keeps another migrator out; run one alone");
}

}  // namespace

void Commands::add_writing(CLI::App& app) {
  const auto dry_run = [this](CLI::App* command) {
    command->add_flag("--dry-run", line_.dry_run, "print the statements, and change nothing");
  };
  up_ = app.add_subcommand("up", "apply pending versions, in order");
  up_->add_option("--to", line_.to, "stop at this version (the latest)")->type_name("N");
  up_->add_flag("--create-schema", line_.create_schema, "make the schema if it is missing");
  dry_run(up_);
  up_->footer(
      "Safe to repeat, for any number at once, and to run again after it was cut off.\n"
      "Examples:\n"
      "  dlock-migrate up --lock-timeout 5m\n"
      "  dlock-migrate up --dry-run");

  down_ = app.add_subcommand("down", "take versions back");
  down_->add_option("--to", line_.to, "the version to go back to; 0 is the empty database")->type_name("N")->required();
  down_->add_flag("--force", line_.force, "even while leases are live: their holders lose them");
  down_->add_flag("--yes", line_.yes, "do not ask");
  dry_run(down_);
  down_->footer(
      "Examples:\n"
      "  dlock-migrate down --to 1\n"
      "  dlock-migrate down --to 0 --dry-run");
}

int Commands::up(Console& console) {
  auto options = line_.options(console);
  const auto to = version_of("--to", line_.to);
  const auto url = line_.url();
  warn(console, line_);
  const Signals signals;
  options.stop = signals.token();
  return print(console, schema::up(url, options, to), line_.dry_run, "applied");
}

int Commands::down(Console& console) {
  auto options = line_.options(console);
  const int to = version_of("--to", *line_.to);
  const auto url = line_.url();
  if (!line_.yes && !line_.dry_run && !confirmed())
    return console.error(Exit::usage, "nothing was done: it was not confirmed");
  warn(console, line_);
  const Signals signals;
  options.stop = signals.token();
  return print(console, schema::down(url, to, options, line_.force), line_.dry_run, "taken back");
}

}  // namespace dlock::tools::migrate
