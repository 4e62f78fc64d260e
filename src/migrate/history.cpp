// How the migrator's statements are sent, and how their answers read; which rights a role has to have, and which
// refusals are told what grants them.
#include "migrate/history.hpp"

#include "dialects/mutants.hpp"
#include "migrate/assessment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dlock::migrate {
namespace {

dialects::Quote quote_of(const dialects::Dialect& dialect) {
  return [&dialect](std::string_view identifier) { return dialect.quote(identifier); };
}

// µs since the epoch, by the database's clock.
schema::Version::Time time_of(std::int64_t microseconds) { return schema::Version::Time{Duration{microseconds}}; }

// The engine's statements come first, so that a number means the same statement to whoever else uses the connection.
std::string all_statements(const dialects::Dialect& dialect, const std::vector<Migration>& migrations) {
  std::string text = fmt::format("{}\n{}\n", dialect.texts().lock_sql,
                                 dialects::with_planted(dialect.texts().migrator_sql, dialect.name()));
  const auto add = [&](const std::vector<Step>& steps, bool up, int version) {
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (!steps[i].probe.empty())
        text += fmt::format("\n-- name: {}({})\n{}\n", probe_name(up, version, i), probe_arguments, steps[i].probe);
  };
  for (const auto& migration : migrations) {
    add(migration.up, true, migration.version);
    add(migration.down, false, migration.version);
  }
  return text;
}

}  // namespace

const HistoryRow* SchemaSnapshot::row(int version) const noexcept {
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const HistoryRow& row) { return row.number == version; });
  return at == rows.end() ? nullptr : &*at;
}

History::History(dialects::Connection& connection, const dialects::Dialect& dialect,
                 const std::vector<Migration>& migrations, dialects::TableNames names, dialects::Connection* writes,
                 std::optional<Deadline> deadline)
    : connection_(connection),
      writes_(writes != nullptr ? *writes : connection),
      dialect_(dialect),
      names_(std::move(names)),
      statements_(all_statements(dialect, migrations), names_, dialect.traits().marker, quote_of(dialect)),
      deadline_(std::move(deadline)) {}

std::string inserted(const dialects::Statement& statement, std::string_view value) {
  const Argument argument = value;
  return with_literals(statement, {&argument, 1},
                       [](std::string& sql, const Argument& text) { sql += std::get<std::string_view>(text); });
}

std::string as_needed(std::string grants) {
  std::replace(grants.begin(), grants.end(), '\n', ' ');
  return grants.empty() ? grants : "; needed: " + grants;
}

std::string History::grants(std::string_view role, std::string_view grantee) const {
  const auto name = fmt::format("grants_{}", role);
  return has(name) ? inserted(statements_.at(name, {"role"}), grantee) + ";" : std::string();
}

void History::add_right(const Failure& failure, std::string_view role) const {
  // A dialect's own words name the right to use a table well, but not the one to make it.
  const bool told = role != "migrator" && std::string_view(failure.what()).find("GRANT") != std::string_view::npos;
  if (failure.cause() == Cause::permission && !told)
    throw Failure(Cause::permission, failure.what() + needed(role), failure.code());
}

bool History::keeps_locks() {
  const auto table = names_.lock_history();
  return ask("lock_history_there", {"schema", "lock_history"}, {names_.schema, table}).integer(0, 0) != 0;
}

const Answer& History::run(std::string_view name, std::initializer_list<std::string_view> header,
                           std::initializer_list<Argument> arguments) {
  return writes_.run(statements_.at(name, header), {arguments.begin(), arguments.size()}, until());
}

const Answer& History::ask(std::string_view name, std::initializer_list<std::string_view> header,
                           std::initializer_list<Argument> arguments) {
  return connection_.run(statements_.at(name, header), {arguments.begin(), arguments.size()}, until());
}

const Answer& History::read_rows() {
  try {
    return ask("read_history", {}, {});
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::schema) throw;
    throw MigrationError(
        SchemaState::drift,
        fmt::format("the table {} is not a history that dlock can read: {}", names_.history, failure.what()),
        "restore it, or name another one with --history-table");
  }
}

SchemaSnapshot History::find() {
  const auto status = names_.status();
  SchemaSnapshot found;
  {
    const auto& there =
        ask("relations", {"schema", "lock", "status", "history"}, {names_.schema, names_.lock, status, names_.history});
    found.schema = there.integer(0, 0) != 0;
    found.lock = there.integer(0, 1) != 0;
    found.status = there.integer(0, 2) != 0;
    found.history = there.integer(0, 3) != 0;
  }
  if (!found.history) return found;
  const auto& rows = read_rows();
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    HistoryRow row;
    row.number = static_cast<int>(rows.integer(i, 0));
    row.name = rows.text(i, 1);
    row.checksum = rows.text(i, 2);
    row.state = rows.text(i, 3);
    row.steps_done = static_cast<int>(rows.integer(i, 4));
    row.steps_total = static_cast<int>(rows.integer(i, 5));
    row.min_client = rows.text(i, 6);
    row.started = time_of(rows.integer(i, 7));
    if (!rows.is_null(i, 8)) row.finished = time_of(rows.integer(i, 8));
    row.tool_version = rows.text(i, 9);
    row.applied_by = rows.text(i, 10);
    row.error = rows.text(i, 11);
    row.owner = rows.text(i, 12);
    row.lease_left = Duration{rows.integer(i, 13)};
    row.format = rows.integer(i, 14);
    found.rows.push_back(std::move(row));
  }
  return found;
}

bool History::has_floor() { return ask("floor_row", {}, {}).rows() == 1; }

bool History::has_some_floor() { return ask("floors", {}, {}).integer(0, 0) == 1; }

bool History::has_identity() { return ask("identity", {}, {}).integer(0, 0) == 1; }

void History::make_floor() {
  if (statements_.has("doubt_tokens")) run("doubt_tokens", {}, {});
  run("make_floor", {}, {});
}

void History::make_identity() { run("make_identity", {}, {}); }

std::vector<std::string> History::lines(std::string_view name) {
  const auto status = names_.status(), waiter = names_.waiter(), holder = names_.holder();
  const auto& rows =
      ask(name, {"schema", "lock", "status", "waiter", "holder"}, {names_.schema, names_.lock, status, waiter, holder});
  std::vector<std::string> result;
  for (std::size_t i = 0; i < rows.rows(); ++i) result.push_back(rows.text(i, 0));
  return result;
}

std::vector<std::string> History::structure() {
  auto result = lines("structure");
  const auto has = [&](std::string_view beginning) {
    return std::any_of(result.begin(), result.end(),
                       [&](const std::string& line) { return line.starts_with(beginning); });
  };
  // The catalogs cannot tell what a row says.
  if (has("lock: table") && has("lock.name: ") && has("lock.meta: ") && has_identity())
    result.emplace_back(identity_line);
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<std::string> History::details() { return lines("details"); }

bool History::may(std::string_view verb, std::string_view part) {
  const auto name = fmt::format("may_{}_{}", verb, part);
  if (!has(name)) return true;
  try {
    ask(name, {}, {});
  } catch (const Failure& failure) {
    if (failure.cause() == Cause::permission) return false;
    if (failure.cause() != Cause::locked && failure.cause() != Cause::schema) throw;
  }
  return true;
}

std::vector<std::string> History::missing_rights(std::string_view role) {
  struct Need {
    std::string_view role, part, name;
    std::vector<std::string_view> verbs;
  };
  const auto waiter = names_.waiter(), holder = names_.holder(), status = names_.status(),
             locks = names_.lock_history();
  const bool kept = keeps_locks();
  const std::vector<std::string_view> all{"select", "insert", "update", "delete"};
  const Need needs[] = {{"runtime", "lock", names_.lock, all},
                        {"runtime", "waiter", waiter, all},
                        {"runtime", "holder", holder, all},
                        {"runtime", "history", names_.history, {"select"}},
                        {kept ? "runtime" : "", "lock_history", locks, {"select", "delete"}},
                        {kept ? "read_only" : "", "lock_history", locks, {"select"}},
                        {"read_only", "lock", names_.lock, {"select"}},
                        {"read_only", "waiter", waiter, {"select"}},
                        {"read_only", "holder", holder, {"select"}},
                        {"read_only", "status", status, {"select"}},
                        {"read_only", "history", names_.history, {"select"}}};
  std::vector<std::string> missing;
  for (const auto& need : needs)
    if (need.role == role)
      for (const auto verb : need.verbs)
        if (!may(verb, need.part)) {
          std::string word(verb);
          for (auto& letter : word) letter = static_cast<char>(letter - 'a' + 'A');
          missing.push_back(fmt::format("{} on {}", word, need.name));
        }
  return missing;
}

std::int64_t History::live_leases() { return ask("live_leases", {}, {}).integer(0, 0); }

void History::create() { script(text("create_history"), until()); }
void History::drop() { script(text("drop_history"), until()); }

void History::insert(const Migration& migration, const Migrator& who, Duration lease) {
  run("insert_version",
      {"version", "name", "checksum", "steps_total", "min_client", "tool_version", "applied_by", "owner", "lease"},
      {std::int64_t{migration.version}, migration.name, migration.checksum,
       static_cast<std::int64_t>(migration.up.size()), migration.min_client, who.tool_version, who.applied_by,
       who.owner, std::int64_t{lease.count()}});
}

bool History::take(int version, int steps_done, int steps_total, const Migrator& who, Duration lease) {
  return run("take_version", {"version", "steps_done", "steps_total", "tool_version", "applied_by", "owner", "lease"},
             {std::int64_t{version}, std::int64_t{steps_done}, std::int64_t{steps_total}, who.tool_version,
              who.applied_by, who.owner, std::int64_t{lease.count()}})
             .affected == 1;
}

bool History::journal(int version, const Migrator& who, int steps_done, Duration lease) {
  return run("journal", {"version", "owner", "steps_done", "lease"},
             {std::int64_t{version}, who.owner, std::int64_t{steps_done}, std::int64_t{lease.count()}})
             .affected == 1;
}

bool History::finish(int version, const Migrator& who) {
  return run("finish_version", {"version", "owner"}, {std::int64_t{version}, who.owner}).affected == 1;
}

bool History::adopt(const Migration& migration, std::string_view state, const Migrator& who) {
  return run("adopt_version", {"version", "name", "checksum", "state", "steps_total", "min_client", "owner"},
             {std::int64_t{migration.version}, migration.name, migration.checksum, state,
              static_cast<std::int64_t>(migration.up.size()), migration.min_client, who.owner})
             .affected == 1;
}

bool History::fail(int version, const Migrator& who, std::string_view error) {
  return run("fail_version", {"version", "owner", "error"}, {std::int64_t{version}, who.owner, error}).affected == 1;
}

bool History::remove(int version, const Migrator& who) {
  return run("remove_version", {"version", "owner"}, {std::int64_t{version}, who.owner}).affected == 1;
}

std::optional<std::int64_t> History::probe(bool up, int version, std::size_t step) {
  const auto name = probe_name(up, version, step);
  if (!has(name)) return std::nullopt;
  const auto status = names_.status(), waiter = names_.waiter(), holder = names_.holder();
  return ask(name, {"schema", "lock", "status", "history", "waiter", "holder"},
             {names_.schema, names_.lock, status, names_.history, waiter, holder})
      .integer(0, 0);
}

void History::run_step(const Step& step, Deadline deadline) {
  script(dialects::fill_in(step.sql, names_, quote_of(dialect_)), deadline);
}

}  // namespace dlock::migrate
