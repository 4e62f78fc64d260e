// This file knows the options that all commands of dlock-migrate share, and which command was given.
#include "tools/migrate/commands.hpp"

#include "tools/shared/usage.hpp"

#include <fmt/format.h>

#include <utility>

namespace dlock::tools::migrate {
namespace {

constexpr std::int64_t highest_version = 9999;

}  // namespace

int version_of(std::string_view flag, const std::string& text) {
  return static_cast<int>(parse_number(flag, text, 0, highest_version));
}

std::optional<int> version_of(std::string_view flag, const std::optional<std::string>& text) {
  return text ? std::optional<int>(version_of(flag, *text)) : std::nullopt;
}

schema::Options Line::options(Console& console) const {
  schema::Options options;
  options.schema = connection.schema();
  options.table = connection.table();
  options.history_table = connection.history_table();
  options.connect_timeout = connection.connect_timeout();
  options.lock_timeout = parse_duration("--lock-timeout", lock_timeout);
  options.ddl_lock_timeout = parse_positive_duration("--ddl-lock-timeout", ddl_lock_timeout);
  options.ddl_retries = static_cast<unsigned>(parse_number("--ddl-retries", ddl_retries, 0, 1000));
  options.statement_timeout = parse_duration("--statement-timeout", statement_timeout);
  options.create_schema = create_schema;
  options.lock = !no_lock;
  options.verify = !no_verify;
  options.dry_run = dry_run;
  options.observer = [&console](std::string_view text) { console.detail(text); };
  return options;
}

Commands::Commands(CLI::App& app) {
  app.require_subcommand(0, 1);  // none is refused in run(), so that a wrong word is named first
  app.fallthrough();
  line_.connection.add_to(app);
  const std::string group = "Patience";
  const auto add = [&](const char* name, std::string& value, const char* type, const char* help) {
    app.add_option(name, value, help)->type_name(type)->group(group);
  };
  add("--lock-timeout", line_.lock_timeout, "D", "wait this long for another migrator (60s)");
  add("--ddl-lock-timeout", line_.ddl_lock_timeout, "D", "wait this long, per try, for users of the table (3s)");
  add("--ddl-retries", line_.ddl_retries, "N", "try again so often (10)");
  add("--statement-timeout", line_.statement_timeout, "D", "give up a statement after this long (0: never)");
  app.add_flag("--no-lock", line_.no_lock, "do not keep other migrators out")->group(group);
  add_writing(app);
  add_reading(app);
}

int Commands::run(Console& console) {
  const std::pair<CLI::App*, int (Commands::*)(Console&)> commands[] = {
      {up_, &Commands::up},       {down_, &Commands::down},   {baseline_, &Commands::baseline},
      {repair_, &Commands::repair}, {status_, &Commands::status},
      {plan_, &Commands::plan},   {check_, &Commands::check}, {dump_, &Commands::dump},
      {grants_, &Commands::grants}, {sql_, &Commands::sql}};
  for (const auto& [app, run] : commands)
    if (app->parsed()) return (this->*run)(console);
  std::string names;
  for (const auto& [app, run] : commands) names += (names.empty() ? "" : ", ") + app->get_name();
  throw UsageError("no command is given: write one of " + names + "; see --help");
}

}  // namespace dlock::tools::migrate
