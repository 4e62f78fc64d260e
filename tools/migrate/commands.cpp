// The options that all commands of dlock-migrate share, and which command was given.
#include "tools/migrate/commands.hpp"

#include "tools/shared/usage.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
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
  options.timeouts.connect = connection.connect_timeout();
  options.timeouts.lock = parse_duration("--lock-timeout", lock_timeout);
  options.timeouts.ddl_lock = parse_positive_duration("--ddl-lock-timeout", ddl_lock_timeout);
  options.ddl_retries = static_cast<unsigned>(parse_number("--ddl-retries", ddl_retries, 0, 1000));
  options.timeouts.statement = parse_duration("--statement-timeout", statement_timeout);
  options.create_schema = create_schema;
  options.lock = !no_lock;
  options.verify = !no_verify;
  options.dry_run = dry_run;
  options.observer = [&console](std::string_view text) { console.detail(text); };
  return options;
}

Commands::Commands(Command& tool) {
  line_.connection.add_to(tool);
  tool.begin_group("Patience");
  tool.add_option("--lock-timeout", "D", line_.lock_timeout, "wait this long for another migrator (60s)");
  tool.add_option("--ddl-lock-timeout", "D", line_.ddl_lock_timeout,
                  "wait this long, per try, for users of the table (3s)");
  tool.add_option("--ddl-retries", "N", line_.ddl_retries, "try again so often (10)");
  tool.add_option("--statement-timeout", "D", line_.statement_timeout,
                  "give up a statement after this long (0: never)");
  tool.add_flag("--no-lock", line_.no_lock, "do not keep other migrators out");
  add_writing(tool);
  add_reading(tool);
  add_guard(tool);
  add_history(tool);
}

int Commands::run(Console& console) {
  const std::pair<const Command*, int (Commands::*)(Console&)> commands[] = {
      {up_, &Commands::up},         {down_, &Commands::down},     {baseline_, &Commands::baseline},
      {repair_, &Commands::repair}, {status_, &Commands::status}, {plan_, &Commands::plan},
      {check_, &Commands::check},   {dump_, &Commands::dump},     {grants_, &Commands::grants},
      {sql_, &Commands::sql},       {guard_, &Commands::guard},   {history_, &Commands::history}};
  const auto is_chosen = [](const auto& each) { return each.first->parsed(); };
  return (this->*std::find_if(std::begin(commands), std::end(commands), is_chosen)->second)(console);
}

}  // namespace dlock::tools::migrate
