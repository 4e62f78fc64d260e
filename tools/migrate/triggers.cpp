// The commands guard and history: print the triggers, make them, take them away; and how --table names a table there.
#include "tools/migrate/commands.hpp"
#include "tools/migrate/report.hpp"
#include "tools/migrate/signals.hpp"
#include "tools/shared/usage.hpp"

#include <dlock/guard.hpp>
#include <dlock/history.hpp>

#include <fmt/core.h>

#include <string_view>
#include <utility>
#include <vector>

namespace dlock::tools::migrate {
namespace {

[[noreturn]] void refuse_table(const std::string& text, std::string_view why) {
  throw UsageError(
      fmt::format("--table {} {}; write NAME or SCHEMA.NAME, and in double quotes what has a dot or a quote in it",
                  in_quotes(text), why));
}

// One name at the beginning of `rest`, which is cut off: orders, or "odd.name" with doubled quotes inside.
std::string next_name(const std::string& text, std::string_view& rest) {
  std::string name;
  if (!rest.starts_with('"')) {
    name = rest.substr(0, rest.find('.'));
    rest.remove_prefix(name.size());
    if (name.find('"') != std::string::npos) refuse_table(text, "has a quote inside of a name");
    return name;
  }
  for (rest.remove_prefix(1);; rest.remove_prefix(1)) {
    if (rest.empty()) refuse_table(text, "has a quote that is not closed");
    if (rest.starts_with("\"\"")) rest.remove_prefix(1);
    else if (rest.starts_with('"')) break;
    name += rest.front();
  }
  rest.remove_prefix(1);
  return name;
}

schema::GuardedColumn column_of(const std::string& table, const std::string& column, const std::string& schema) {
  std::vector<std::string> names;
  std::string_view rest = table;
  for (;; rest.remove_prefix(1)) {
    names.push_back(next_name(table, rest));
    if (names.back().empty()) refuse_table(table, "has an empty name in it");
    if (rest.empty()) break;
    if (!rest.starts_with('.')) refuse_table(table, "goes on behind a closing quote");
  }
  if (names.size() > 2) refuse_table(table, "has more than two names in it");
  if (names.size() == 2 && !schema.empty())
    throw UsageError(
        fmt::format("the schema is named twice: --schema {} and --table {}", in_quotes(schema), in_quotes(table)));
  return {names.size() == 2 ? names.front() : schema, names.back(), column};
}

}  // namespace

void Commands::add_guard(Command& tool) {
  const auto known = schema::dialects();
  const auto example = known.empty() ? std::string("D") : known.front();
  guard_ = &tool.add_command("guard", "keep writes with an old fencing token out of a table of yours");
  guard_->add_option("--table", "[SCHEMA.]NAME", line_.guarded, "the table, as the database spells it").required = true;
  guard_->add_option("--column", "NAME", line_.column, "its column with the last fencing token").required = true;
  guard_->add_flag("--apply", line_.apply, "do it; else the statements are printed");
  guard_->add_flag("--remove", line_.remove, "take the guard away");
  guard_->add_option("--dialect", joined(known, "|"), line_.dialect, "whose SQL, without a connection");
  guard_->set_footer(
      "A trigger refuses every UPDATE that makes the column smaller, or NULL again. It\n"
      "lets pass what leaves the column alone, and DELETE: see fencing.md.\n"
      "Examples:\n"
      "  dlock-migrate guard --table orders --column last_fence --apply\n"
      "  dlock-migrate guard --table orders --column last_fence --dialect " +
      example);
}

void Commands::add_history(Command& tool) {
  const auto known = schema::dialects();
  const auto example = known.empty() ? std::string("D") : known.front();
  history_ = &tool.add_command("history", "have each grant that ends leave a row in a table");
  history_->add_flag("--apply", line_.apply, "do it; else the statements are printed");
  history_->add_flag("--remove", line_.remove, "take the history away, with all its rows");
  history_->add_option("--dialect", joined(known, "|"), line_.dialect, "whose SQL, without a connection");
  history_->set_footer(
      "Triggers write it, in the commit that ends the grant; dlock history NAME reads\n"
      "it, and a reaper that is told how much to keep cuts it: see operations.md.\n"
      "Examples:\n"
      "  dlock-migrate history --apply\n"
      "  dlock-migrate history --remove --apply\n"
      "  dlock-migrate history --schema app --dialect " +
      example);
}

// `sql` prints it for a dialect; `act` does it, or tells what it would do.
template <class Sql, class Act>
int Commands::change_triggers(Console& console, schema::Options options, Sql sql, Act act) {
  if (line_.dialect && line_.apply)
    throw UsageError("--apply needs a database, and --dialect is for printing without one: leave one of them out");
  schema::GuardReport report;
  const Signals signals(Signals::Meaning::finish_the_step);
  if (line_.dialect) {
    report.changed = true;
    report.sql = sql(*line_.dialect);
  } else {
    options.stop = signals.stop();
    options.dry_run = options.dry_run || !line_.apply;
    report = act(line_.url(), options);
  }
  return print(console, report, line_.apply);
}

int Commands::guard(Console& console) {
  const auto options = line_.options(console);
  const auto column = column_of(line_.guarded, line_.column, options.schema);
  const auto sql = line_.remove ? schema::drop_guard_sql : schema::make_guard_sql;
  const auto act = line_.remove ? schema::drop_guard : schema::make_guard;
  return change_triggers(
      console, options, [&](const auto& dialect) { return sql(dialect, column); },
      [&](const auto& url, const auto& with) { return act(url, column, with); });
}

int Commands::history(Console& console) {
  const auto options = line_.options(console);
  const auto sql = line_.remove ? schema::drop_history_sql : schema::make_history_sql;
  const auto act = line_.remove ? schema::drop_history : schema::make_history;
  return change_triggers(
      console, options, [&](const auto& dialect) { return sql(dialect, options); }, act);
}

}  // namespace dlock::tools::migrate
