// This file knows the options of each command, and what it prints.
#include "tools/migrate/commands.hpp"

#include "tools/migrate/report.hpp"
#include "tools/migrate/signals.hpp"
#include "tools/shared/usage.hpp"

#include <dlock/schema.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <optional>

namespace dlock::tools::migrate {
namespace {

constexpr std::int64_t highest_version = 9999;
constexpr Duration look_again = std::chrono::milliseconds{250};

int version_of(std::string_view flag, const std::string& text) {
  return static_cast<int>(parse_number(flag, text, 0, highest_version));
}

schema::Options options_of(const Line& line, Console& console) {
  schema::Options options;
  options.schema = line.connection.schema();
  options.table = line.connection.table();
  options.history_table = line.connection.history_table();
  options.connect_timeout = line.connection.connect_timeout();
  options.lock_timeout = parse_duration("--lock-timeout", line.lock_timeout);
  options.ddl_lock_timeout = parse_positive_duration("--ddl-lock-timeout", line.ddl_lock_timeout);
  options.ddl_retries = static_cast<unsigned>(parse_number("--ddl-retries", line.ddl_retries, 0, 1000));
  options.statement_timeout = parse_duration("--statement-timeout", line.statement_timeout);
  options.create_schema = line.create_schema;
  options.observer = [&console](std::string_view text) { console.detail(text); };
  return options;
}

std::string url_of(const Line& line) { return line.connection.url({"DLOCK_MIGRATE_URL", "DLOCK_URL"}); }

bool confirmed() {
  if (::isatty(STDIN_FILENO) == 0) throw UsageError("down drops tables: off a terminal it needs --yes");
  std::cerr << "dlock-migrate: this drops tables, and forgets the fencing tokens in them. Go on? [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

// Sleeps unless a signal comes. False: it came.
bool pause(Duration length, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock guard(mutex);
  never.wait_for(guard, stop, length, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace

Commands::Commands(CLI::App& app) {
  app.require_subcommand(0, 1);  // none is refused in run(), so that a wrong word is named first
  app.fallthrough();
  line_.connection.add_to(app);
  const std::string group = "Patience";
  app.add_option("--lock-timeout", line_.lock_timeout, "wait this long for another migrator (60s)")->type_name("D")->group(group);
  app.add_option("--ddl-lock-timeout", line_.ddl_lock_timeout, "wait this long, per try, for users of the table (3s)")
      ->type_name("D")->group(group);
  app.add_option("--ddl-retries", line_.ddl_retries, "try again so often (10)")->type_name("N")->group(group);
  app.add_option("--statement-timeout", line_.statement_timeout, "give up a statement after this long (0: never)")
      ->type_name("D")->group(group);

  const auto take = [](std::string& value, bool& given) {
    return [&value, &given](const std::string& text) {
      value = text;
      given = true;
    };
  };
  up_ = app.add_subcommand("up", "apply pending versions, in order");
  up_->add_option_function<std::string>("--to", take(line_.to, line_.to_given), "stop at this version (the latest)")->type_name("N");
  up_->add_flag("--create-schema", line_.create_schema, "make the schema if it is missing");

  down_ = app.add_subcommand("down", "take versions back");
  down_->add_option_function<std::string>("--to", take(line_.to, line_.to_given), "the version to go back to; 0 is the empty database")
      ->type_name("N")->required();
  down_->add_flag("--force", line_.force, "even while leases are live: their holders lose them");
  down_->add_flag("--yes", line_.yes, "do not ask");

  status_ = app.add_subcommand("status", "show what is applied, and what is not; writes nothing");
  status_->add_flag("--exit-code", line_.exit_code, "leave with the code that check would leave with");

  check_ = app.add_subcommand("check", "is everything applied, unchanged and usable? For probes; needs only SELECT");
  check_->add_option("--wait", line_.wait, "wait this long until it is (0)")->type_name("D");

  sql_ = app.add_subcommand("sql", "print the statements; needs no database");
  sql_->add_option("--dialect", line_.dialect, fmt::format("{}", fmt::join(schema::dialects(), ", ")))->type_name("D")->required();
  sql_->add_option_function<std::string>("--from", take(line_.from, line_.from_given), "the version to begin at (0, with --down the latest)")
      ->type_name("A");
  sql_->add_option_function<std::string>("--to", take(line_.to, line_.to_given), "the version to end at (the latest, with --down 0)")
      ->type_name("B");
  sql_->add_flag("--down", line_.downwards, "the way back");
  sql_->add_flag("--no-history", line_.no_history, "without the history table: the engine works, up and down do not");
}

int Commands::run(Console& console) {
  if (up_->parsed()) return up(console);
  if (down_->parsed()) return down(console);
  if (status_->parsed()) return status(console);
  if (check_->parsed()) return check(console);
  if (sql_->parsed()) return sql(console);
  throw UsageError("no command is given: write up, down, status, check or sql; see --help");
}

int Commands::up(Console& console) {
  auto options = options_of(line_, console);
  const auto to = line_.to_given ? std::optional<int>(version_of("--to", line_.to)) : std::nullopt;
  const auto url = url_of(line_);
  const Signals signals;
  options.stop = signals.token();
  return print(console, schema::up(url, options, to), true);
}

int Commands::down(Console& console) {
  auto options = options_of(line_, console);
  const int to = version_of("--to", line_.to);
  const auto url = url_of(line_);
  if (!line_.yes && !confirmed()) return console.error(Exit::usage, "nothing was done: it was not confirmed");
  const Signals signals;
  options.stop = signals.token();
  return print(console, schema::down(url, to, options, line_.force), false);
}

int Commands::status(Console& console) {
  const auto options = options_of(line_, console);
  const auto status = schema::status(url_of(line_), options);
  if (status.verdict == schema::Verdict::failed) return report(console, status);
  print(console, status);
  return line_.exit_code ? number(exit_code(status.verdict, true)) : number(Exit::ok);
}

int Commands::check(Console& console) {
  const auto options = options_of(line_, console);
  const auto wait = parse_duration("--wait", line_.wait);
  const auto url = url_of(line_);
  const Signals signals;
  const auto end = std::chrono::steady_clock::now() + std::min<Duration>(wait, std::chrono::hours{24 * 365});
  for (;;) {
    const bool last = std::chrono::steady_clock::now() >= end;
    try {
      const auto status = schema::check(url, options);
      const bool may_change = status.verdict == schema::Verdict::pending || status.verdict == schema::Verdict::locked ||
                              status.verdict == schema::Verdict::interrupted;
      if (last || !may_change) return report(console, status);
      console.detail(status.message);
    } catch (const Error& error) {
      const bool may_change = error.fault() == Fault::unavailable || error.fault() == Fault::timeout;
      if (last || !may_change) throw;
      console.detail(error.what());
    }
    if (!pause(look_again, signals.token())) return 128 + Signals::received();
  }
}

int Commands::sql(Console& console) {
  const auto options = options_of(line_, console);
  const int latest = schema::latest(line_.dialect);
  const int from = line_.from_given ? version_of("--from", line_.from) : line_.downwards ? latest : 0;
  const int to = line_.to_given ? version_of("--to", line_.to) : line_.downwards ? 0 : latest;
  if (line_.downwards ? to > from : to < from)
    throw UsageError(fmt::format("--from {} --to {} {}", from, to,
                                 line_.downwards ? "leads upwards: leave --down out" : "leads downwards: pass --down"));
  auto text = schema::sql(line_.dialect, from, to, options, !line_.no_history);
  while (text.starts_with('\n')) text.erase(0, 1);
  if (console.json()) {
    console.result(nlohmann::json{{"dialect", line_.dialect}, {"from", from}, {"to", to}, {"sql", text}});
  } else {
    while (text.ends_with('\n')) text.pop_back();
    console.result(text);
  }
  return number(Exit::ok);
}

}  // namespace dlock::tools::migrate
