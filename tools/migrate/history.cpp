// Prints the history of the locks, makes it, and takes it away.
#include "tools/migrate/commands.hpp"
#include "tools/migrate/report.hpp"
#include "tools/migrate/signals.hpp"
#include "tools/shared/usage.hpp"

#include <dlock/history.hpp>

namespace dlock::tools::migrate {

void Commands::add_history(Command& tool) {
  const auto known = schema::dialects();
  const auto example = known.empty() ? std::string("D") : known.front();
  history_ = &tool.add_command("history", "have each grant that ends leave a row in a table");
  history_->add_flag("--apply", line_.apply, "do it; else the statements are printed");
  history_->add_flag("--remove", line_.remove, "take the history away, with all its rows");
  history_->add_option("--dialect", joined(known, "|"), line_.dialect, "whose SQL, without a connection");
  history_->set_footer(
      "Triggers write it, in the commit that ends the grant; dlock history NAME reads\n"
      "it, and a reaper that is told how much to keep cuts it: see docs/operations.md.\n"
      "Examples:\n"
      "  dlock-migrate history --apply\n"
      "  dlock-migrate history --remove --apply\n"
      "  dlock-migrate history --schema app --dialect " +
      example);
}

int Commands::history(Console& console) {
  auto options = line_.options(console);
  if (line_.dialect && line_.apply)
    throw UsageError("--apply needs a database, and --dialect is for printing without one: leave one of them out");
  schema::HistoryReport report;
  const Signals signals(Signals::Meaning::finish_the_step);
  if (line_.dialect) {
    report.changed = true;
    report.sql = line_.remove ? schema::drop_history_sql(*line_.dialect, options)
                              : schema::make_history_sql(*line_.dialect, options);
  } else {
    options.stop = signals.stop();
    options.dry_run = options.dry_run || !line_.apply;
    const auto act = line_.remove ? schema::drop_history : schema::make_history;
    report = act(line_.url(), options);
  }
  return print(console, report, line_.apply);
}

}  // namespace dlock::tools::migrate
