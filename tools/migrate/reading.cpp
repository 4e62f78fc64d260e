// The commands that only look (status, plan, check, dump), or print statements for somebody else to run (grants, sql);
// and what check --wait waits for, and how often it looks.
#include "tools/migrate/commands.hpp"
#include "tools/migrate/report.hpp"
#include "tools/migrate/signals.hpp"
#include "tools/shared/json.hpp"
#include "tools/shared/usage.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

namespace dlock::tools::migrate {
namespace {

constexpr Duration look_again = std::chrono::milliseconds{250};

schema::Role role_of(const std::string& word, const std::vector<std::string>& possible) {
  if (std::find(possible.begin(), possible.end(), word) == possible.end())
    throw UsageError(fmt::format("--role {} is unknown; write one of {}", in_quotes(word), joined(possible, ", ")));
  return word == "migrator"  ? schema::Role::migrator
         : word == "runtime" ? schema::Role::runtime
                             : schema::Role::read_only;
}

}  // namespace

void Commands::add_reading(Command& tool) {
  status_ = &tool.add_command("status", "show what is applied, and what is not");
  status_->add_flag("--exit-code", line_.exit_code,
                    "leave with check's code for this state; the tables are not looked at");
  status_->set_footer(
      "Writes nothing, and needs only SELECT.\n"
      "Examples:\n"
      "  dlock-migrate status\n"
      "  dlock-migrate status --exit-code --format json");

  plan_ = &tool.add_command("plan", "print what up would run now, statement by statement");
  plan_->add_option("--to", "N", line_.to, "stop at this version (the latest)");
  plan_->add_flag("--create-schema", line_.create_schema, "as if up had it");
  plan_->set_footer(
      "Writes nothing, and needs only SELECT. The same as up --dry-run.\n"
      "Examples:\n"
      "  dlock-migrate plan\n"
      "  dlock-migrate plan --to 1 --format json");

  check_ = &tool.add_command("check", "is everything applied, unchanged and usable?");
  check_->add_option("--wait", "D", line_.wait, "wait this long until it is (0)");
  check_->add_option("--role", "runtime|read-only", line_.role, "has this connection's role the rights of one?");
  check_->set_footer(
      "For deployments and readiness probes. Writes nothing, and needs only SELECT.\n"
      "--role names the rights that are missing, and exits 9.\n"
      "Examples:\n"
      "  dlock-migrate check --role runtime -u \"$APP_URL\"\n"
      "  dlock-migrate check -q || exit 1\n"
      "  dlock-migrate check --wait 2m && exec ./server");

  dump_ = &tool.add_command("dump", "print what the tables are, for reports and comparisons");
  dump_->set_footer(
      "The same tables give the same lines. -v adds the server's own words.\n"
      "Writes nothing, and needs only SELECT.\n"
      "Examples:\n"
      "  dlock-migrate dump > tables.txt\n"
      "  dlock-migrate dump -e OTHER_URL | diff tables.txt -");

  const auto known = schema::dialects();
  const auto example = known.empty() ? std::string("D") : known.front();
  grants_ = &tool.add_command("grants", "print the least GRANT statements for a role");
  grants_->add_option("--role", "migrator|runtime|read-only", line_.role, "what it is for").required = true;
  grants_->add_option("--to", "NAME", line_.grantee, "its name (dlock_migrator, …)");
  grants_->add_option("--dialect", joined(known, "|"), line_.dialect, "whose SQL, without a connection");
  grants_->set_footer(
      "To be run by an administrator: for the migrator before up, for the others after\n"
      "it, and again after an upgrade.\n"
      "Examples:\n"
      "  dlock-migrate grants --role runtime --to app\n"
      "  dlock-migrate grants --role migrator --dialect " +
      example + " --schema S");

  sql_ = &tool.add_command("sql", "print the statements; needs no database");
  sql_->add_option("--dialect", joined(known, "|"), line_.dialect, "whose SQL").required = true;
  sql_->add_option("--from", "A", line_.from, "begin at this version (0)");
  sql_->add_option("--to", "B", line_.to, "end at this version (the latest)");
  sql_->add_flag("--down", line_.downwards, "the way back, from the latest to 0");
  sql_->add_flag("--no-history", line_.no_history, "without the history (see baseline)");
  sql_->set_footer(
      "Examples:\n"
      "  dlock-migrate sql --dialect " +
      example +
      " > lock_table.sql\n"
      "  dlock-migrate sql --dialect " +
      example + " --down");
}

int Commands::status(Console& console) {
  const auto options = line_.options(console);
  const auto status = schema::status(line_.url(), options);
  if (status.state == schema::SchemaState::failed) return report(console, status);
  print(console, status);
  return line_.exit_code ? number(exit_code(status.state, true)) : number(Exit::ok);
}

int Commands::plan(Console& console) {
  const auto options = line_.options(console);
  const auto to = version_of("--to", line_.to);
  return print(console, schema::plan(line_.url(), options, to), true, {});
}

int Commands::check(Console& console) {
  const auto options = line_.options(console);
  const auto wait = parse_duration("--wait", line_.wait);
  const auto role = line_.role.empty() ? std::nullopt : std::optional(role_of(line_.role, {"runtime", "read-only"}));
  const auto url = line_.url();
  const Signals signals(Signals::Meaning::leave);
  const auto end = std::chrono::steady_clock::now() + std::min<Duration>(wait, std::chrono::hours{24 * 365});
  for (;;) {
    const bool last = std::chrono::steady_clock::now() >= end;
    try {
      const auto status = schema::check(url, options, role);
      const bool may_change = status.state == schema::SchemaState::pending ||
                              status.state == schema::SchemaState::locked ||
                              status.state == schema::SchemaState::interrupted;
      if (last || !may_change) return report(console, status);
      console.detail(status.message);
    } catch (const Error& error) {
      const bool may_change = error.fault() == Fault::unavailable || error.fault() == Fault::timeout;
      if (last || !may_change) throw;
      console.detail(error.what());
    }
    std::this_thread::sleep_for(look_again);
  }
}

int Commands::dump(Console& console) {
  const auto options = line_.options(console);
  const auto structure = schema::dump(line_.url(), options);
  if (console.json()) {
    console.result(Json::object({{"target", structure.target},
                                 {"server", structure.server},
                                 {"schema", structure.schema},
                                 {"table", structure.table},
                                 {"version", structure.version},
                                 {"structure", structure.lines},
                                 {"details", structure.details}}));
    return number(Exit::ok);
  }
  console.note(fmt::format("{} ({}), table {}.{}, version {}", structure.target, structure.server, structure.schema,
                           structure.table, structure.version));
  for (const auto& line : structure.lines) console.result(line);
  for (const auto& line : structure.details) console.detail(line);
  return number(Exit::ok);
}

int Commands::grants(Console& console) {
  const auto options = line_.options(console);
  const auto role = role_of(line_.role, {"migrator", "runtime", "read-only"});
  auto name = line_.grantee.value_or("dlock_" + line_.role);
  if (!line_.grantee) std::replace(name.begin(), name.end(), '-', '_');
  const auto text = line_.dialect ? schema::grants_for(*line_.dialect, role, name, options)
                                  : schema::grants(line_.url(), role, name, options);
  if (console.json()) console.result(Json::object({{"role", line_.role}, {"to", name}, {"sql", text}}));
  else console.result(text);
  return number(Exit::ok);
}

int Commands::sql(Console& console) {
  const auto options = line_.options(console);
  const int latest = schema::latest(*line_.dialect);
  const int from = version_of("--from", line_.from).value_or(line_.downwards ? latest : 0);
  const int to = version_of("--to", line_.to).value_or(line_.downwards ? 0 : latest);
  const bool known = std::max(from, to) <= latest;  // else schema::sql() says so
  if (known && (line_.downwards ? to > from : to < from))
    throw UsageError(fmt::format("--from {} --to {} {}", from, to,
                                 line_.downwards ? "leads upwards: leave --down out" : "leads downwards: pass --down"));
  const auto text = schema::sql(*line_.dialect, from, to, options, !line_.no_history);
  if (console.json())
    console.result(Json::object({{"dialect", *line_.dialect}, {"from", from}, {"to", to}, {"sql", text}}));
  else print_script(console, text);
  return number(Exit::ok);
}

}  // namespace dlock::tools::migrate
