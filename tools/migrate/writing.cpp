// The commands that change the database (up, down, baseline, repair); and what is asked, or shown, before that.
#include "tools/migrate/commands.hpp"
#include "tools/migrate/report.hpp"
#include "tools/migrate/signals.hpp"
#include "tools/shared/progress.hpp"
#include "tools/shared/usage.hpp"

#include <unistd.h>

#include <iostream>
#include <utility>

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

// What the migrator says of itself is also shown on a line of its own while it works.
template <class Work>
schema::Report with_progress(const Console& console, schema::Options& options, Work work) {
  ProgressLine line(console);
  line.say("asking the database");
  const auto told = std::exchange(options.observer, nullptr);
  options.observer = [&](std::string_view text) {
    line.say(text);
    told(text);
  };
  auto report = work();
  options.observer = told;
  return report;
}

}  // namespace

void Commands::add_writing(Command& tool) {
  const auto dry_run = [this](Command* command) {
    command->add_flag("--dry-run", line_.dry_run, "print the statements, and change nothing");
  };
  up_ = &tool.add_command("up", "apply pending versions, in order");
  up_->add_option("--to", "N", line_.to, "stop at this version (the latest)");
  up_->add_flag("--create-schema", line_.create_schema, "make the schema if it is missing");
  dry_run(up_);
  up_->set_footer(
      "Safe to repeat, for any number at once, and to run again after it was cut off.\n"
      "Examples:\n"
      "  dlock-migrate up --lock-timeout 5m\n"
      "  dlock-migrate up --dry-run");

  down_ = &tool.add_command("down", "take versions back");
  down_->add_option("--to", "N", line_.to, "go back to this version; 0: the empty database").required = true;
  down_->add_flag("--force", line_.force, "even while leases are live: they are lost");
  down_->add_flag("--yes", line_.yes, "do not ask");
  dry_run(down_);
  down_->set_footer(
      "Examples:\n"
      "  dlock-migrate down --to 0\n"
      "  dlock-migrate down --to 0 --dry-run");

  const auto no_verify = [this](Command* command) {
    command->add_flag("--no-verify", line_.no_verify, "do not compare the tables with N first");
  };
  baseline_ = &tool.add_command("baseline", "begin a history for a table that was made by other means");
  baseline_->add_option("--at", "N", line_.at, "the version that the table is at").required = true;
  no_verify(baseline_);
  dry_run(baseline_);
  baseline_->set_footer(
      "Examples:\n"
      "  dlock-migrate baseline --at 1\n"
      "  dlock-migrate baseline --at 1 --dry-run");

  repair_ = &tool.add_command("repair", "finish a version that is half done, or put the history right");
  const auto& marked =
      repair_->add_option("--mark-applied", "N", line_.mark_applied, "version N is there: it was finished by hand");
  repair_->add_option("--discard", "N", line_.discard, "version N is not there: it was taken back by hand").excludes =
      &marked;
  no_verify(repair_);
  dry_run(repair_);
  repair_->set_footer(
      "Prints its plan first. By itself it looks at each step of the version that is\n"
      "half done, and runs those that are not, as up does; if none is, it makes the\n"
      "view for people anew where that is missing.\n"
      "Examples:\n"
      "  dlock-migrate repair\n"
      "  dlock-migrate repair --mark-applied 1 --dry-run");
}

template <class Work>
int Commands::change(Console& console, schema::Options options, std::string_view done, Work work) {
  warn(console, line_);
  const Signals signals(Signals::Meaning::finish_the_step);
  options.stop = signals.stop();
  options.cancel = signals.cancel();
  return print(console, with_progress(console, options, [&] { return work(options); }), line_.dry_run, done);
}

int Commands::up(Console& console) {
  const auto options = line_.options(console);
  const auto to = version_of("--to", line_.to);
  const auto url = line_.url();
  return change(console, options, "applied", [&](const auto& with) { return schema::up(url, with, to); });
}

int Commands::down(Console& console) {
  const auto options = line_.options(console);
  const int to = version_of("--to", *line_.to);
  const auto url = line_.url();
  if (!line_.yes && !line_.dry_run && !confirmed())
    return console.error(Exit::usage, "nothing was done: it was not confirmed");
  return change(console, options, "taken back",
                [&](const auto& with) { return schema::down(url, to, with, line_.force); });
}

int Commands::baseline(Console& console) {
  const auto options = line_.options(console);
  const int at = version_of("--at", line_.at);
  const auto url = line_.url();
  return change(console, options, "adopted", [&](const auto& with) { return schema::baseline(url, at, with); });
}

int Commands::repair(Console& console) {
  auto options = line_.options(console);
  const auto marked = version_of("--mark-applied", line_.mark_applied);
  const auto discarded = version_of("--discard", line_.discard);
  if (line_.no_verify && !marked && !discarded)
    throw UsageError("--no-verify is for --mark-applied and --discard: the steps of a version are always looked at");
  const auto url = line_.url();
  warn(console, line_);
  const Signals signals(Signals::Meaning::finish_the_step);
  options.stop = signals.stop();
  options.cancel = signals.cancel();
  const auto run = [&](bool dry_run) {
    options.dry_run = dry_run;
    if (marked) return schema::mark_applied(url, *marked, options);
    if (discarded) return schema::discard(url, *discarded, options);
    return schema::repair(url, options);
  };
  const auto done = marked ? "marked as applied" : discarded ? "discarded" : "applied";
  auto planned = run(true);
  if (line_.dry_run || planned.state != schema::SchemaState::good ||
      (planned.versions.empty() && planned.restored.empty()))
    return print(console, planned, line_.dry_run, done);
  if (!console.json()) print_script(console, planned.plan);
  auto report = with_progress(console, options, [&] { return run(false); });
  report.plan = std::move(planned.plan);
  return print(console, report, false, done);
}

}  // namespace dlock::tools::migrate
