// What the migrator tells and writes nothing for: what is there, what a migration would send, and scripts for people.
#include "migrate/migration_lock.hpp"
#include "migrate/migrator.hpp"
#include "migrate/recording.hpp"
#include "migrate/script_recorder.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace dlock::migrate {
namespace {

schema::Version version_of(const Migration& migration) {
  schema::Version version;
  version.number = migration.version;
  version.name = migration.name;
  version.state = "pending";
  version.known = true;
  version.checksum = migration.checksum;
  version.min_client = migration.min_client;
  version.steps_total = static_cast<int>(migration.up.size());
  return version;
}

void add_if_there(History& history, std::string_view statement) {
  if (history.has(statement)) history.script(history.text(statement), soon());
}

}  // namespace

schema::Status TableMigrator::survey(bool thorough, std::string_view role) {
  if (role == "migrator")
    throw Error(Fault::misuse,
                "what the role that migrates lacks is known only when it does: up says so; grants tells what it needs");
  try {
    return surveyed(thorough, role);
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::schema || as_refusal(failure)) rethrow_with_right(failure, "read_only");
    schema::Status status;  // there is not even a database
    status.state = SchemaState::pending;
    status.message = failure.what();
    add_pending(status);
    return status;
  }
}

schema::Status TableMigrator::surveyed(bool thorough, std::string_view role) {
  open();
  const auto& names = history_->names();
  const auto found = look(true);
  const auto assessment = judge(found);
  schema::Status status;
  status.state = assessment.state;
  status.message = assessment.message;
  status.hint = assessment.hint;
  status.server = server_;
  status.schema = names.schema;
  status.table = names.lock;
  status.current = assessment.current;
  status.table_exists = found.lock;
  status.history_exists = found.history;
  for (const auto& row : found.rows) {
    status.versions.push_back(row);
    status.versions.back().known = row.number <= latest();
  }
  add_pending(status);
  if (!role.empty() && found.lock)
    if (const auto missing = history_->missing_rights(role); !missing.empty())
      throw Failure(Cause::permission,
                    fmt::format("this role lacks rights: {}{}", fmt::join(missing, ", "),
                                as_needed(history_->grants(role, "the role") + grants_on_history(role, "the role"))));
  if (unrecorded(assessment, found) && !history_->may("select", "history"))
    throw Failure(Cause::permission, fmt::format("there is no history {} that this role may see", names.history));
  if (!thorough || status.state != SchemaState::good || status.current > latest()) return status;
  const Reading reading(*history_);
  status.differences = differences_from(status.current);
  if (status.differences.empty()) {
    add_lack_of_recorder(status);
    return status;
  }
  status.state = SchemaState::drift;
  status.message = fmt::format("the table {} is not what version {} should be: {}", shown(names), status.current,
                               fmt::join(status.differences, "; "));
  const bool mendable = differences_from(status.current, false).empty();
  status.hint = mendable ? hint_command("repair", table_) + " to make it anew" : "compare with \"dlock-migrate sql\"";
  return status;
}

// As it is after a copy of the tables without their triggers.
void TableMigrator::add_lack_of_recorder(schema::Status& status) {
  const auto& names = history_->names();
  if (!history_->keeps_locks() || !lacks_recorder(*connection_, RecordingStatements(dialect_, names))) return;
  status.state = SchemaState::drift;
  status.differences.push_back(fmt::format("{}: the triggers on {} that write it are missing, or switched off",
                                           names.lock_history(), names.lock));
  status.message =
      fmt::format("the history of the table {} is not written: {}", shown(names), status.differences.front());
  status.hint = hint_command("history --apply", table_) + " to go on with it, or with --remove to have none";
}

void TableMigrator::add_pending(schema::Status& status) const {
  auto& versions = status.versions;
  for (const auto& migration : migrations_)
    if (migration.version > status.current && std::none_of(versions.begin(), versions.end(), [&](const auto& version) {
          return version.number == migration.version;
        }))
      versions.push_back(version_of(migration));
  std::sort(versions.begin(), versions.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
}

schema::Structure TableMigrator::dump() {
  open();
  try {
    const Reading reading(*history_);
    const auto& names = history_->names();
    return {
        target(),           server_, names.schema, names.lock, judge(history_->find()).current, history_->structure(),
        history_->details()};
  } catch (const Failure& failure) { rethrow_with_right(failure, "read_only"); }
}

std::string TableMigrator::grants(std::string_view role, std::string_view name) {
  open();
  return grants_of(dialect_, history_->names(), role, name) + grants_on_history(role, dialect_.grantee(name));
}

// Behind the others, where a history of the locks is kept.
std::string TableMigrator::grants_on_history(std::string_view role, std::string_view grantee) {
  const auto more =
      history_->keeps_locks() ? history_->grants(fmt::format("history_{}", role), grantee) : std::string();
  return more.empty() ? more : "\n" + more;
}

std::string grants_of(const dialects::Dialect& dialect, const dialects::TableNames& names, std::string_view role,
                      std::string_view name) {
  const auto migrations = migrations_of(dialect);
  ScriptRecorder nobody(dialect);
  auto text = History(nobody, dialect, migrations, names).grants(role, dialect.grantee(name));
  if (text.empty())
    throw Error(
        Fault::misuse,
        fmt::format("{} knows no roles: who may read or write the file may do so with the tables", dialect.name()));
  if (names.schema.empty() && text.find(dialect.quote({})) != std::string::npos)
    throw Error(Fault::misuse, "these statements name the schema: pass --schema, or a URL instead of the dialect");
  return text;
}

bool TableMigrator::lacks_view(int version) {
  return version > 0 && !history_->find().status && history_->may("see", "status");
}

std::vector<std::string> TableMigrator::differences_from(int version, bool with_mendable) {
  auto expected = version == 0 ? std::vector<std::string>{} : migration(version).structure;
  if (version > 0 && !history_->find().status && (!with_mendable || !lacks_view(version)))
    std::erase_if(expected, [](const std::string& line) { return line.starts_with("status"); });
  auto found = history_->structure();
  // A table of that name may be another program's.
  const bool ours =
      std::any_of(found.begin(), found.end(), [](const std::string& line) { return line.starts_with("lock.name: "); });
  const bool floor = !ours || history_->has_some_floor();
  if (!floor || !with_mendable) std::erase(expected, identity_line);
  if (!with_mendable) std::erase(found, identity_line);
  auto result = differences(expected, found, history_->names());
  if (result.empty() && version > 0 && !floor && with_mendable)
    result.emplace_back(
        fmt::format("the floor row is missing: \"dlock-migrate repair{}\" makes it again, above every "
                    "fencing token ever handed out",
                    table_.flags));
  return result;
}

void TableMigrator::open_for_dry_run() {
  try {
    open();
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::schema) throw;
    auto recorder = std::make_unique<ScriptRecorder>(dialect_);
    auto history = std::make_unique<History>(*recorder, dialect_, migrations_, names_);
    if (history->has("create_schema")) throw;  // a database is made by a person where it can hold several schemas
    recorder_ = std::move(recorder);
    history_ = std::move(history);
    simulated_.emplace().schema = true;
  }
}

void TableMigrator::simulate(const MigrationStep& next, SchemaSnapshot found) {
  auto& rows = found.rows;
  if (next.up) {
    found.schema = found.lock = found.status = found.history = true;
    auto version = version_of(*next.migration);
    version.state = "applied";
    version.steps_done = version.steps_total;
    auto at =
        std::find_if(rows.begin(), rows.end(), [&](const HistoryRow& row) { return row.number >= version.number; });
    if (at == rows.end() || at->number != version.number) at = rows.insert(at, HistoryRow{});
    *at = HistoryRow{std::move(version)};
  } else {
    rows.pop_back();
    found.lock = found.status = found.history = !rows.empty();
  }
  simulated_ = std::move(found);
}

std::string script_of(const dialects::Dialect& dialect, const dialects::TableNames& names, int from, int to,
                      bool with_history, std::string_view tool_version) {
  const auto migrations = migrations_of(dialect);
  ScriptRecorder recorder(dialect);
  History history(recorder, dialect, migrations, names);
  const Migrator by{std::string(tool_version), "dlock-migrate sql", "dlock-migrate sql"};
  recorder.comment(fmt::format("dlock {}, {}: from version {} to version {}", tool_version, dialect.name(), from, to));
  add_if_there(history, "settings");
  const auto write = [&](int version, bool up) {
    const auto& migration = migrations.at(static_cast<std::size_t>(version - 1));
    const auto& steps = up ? migration.up : migration.down;
    recorder.comment(fmt::format("{}version {}: {}", up ? "" : "taking back ", version, migration.name));
    add_if_there(history, "begin");
    if (with_history && up && version == 1) history.create();
    for (const auto& step : steps) {
      recorder.comment(step.title);
      history.run_step(step, soon());
    }
    if (with_history && up) {
      history.insert(migration, by, Duration{});
      history.finish(version, by);
    } else if (with_history) {
      history.take(version, 0, static_cast<int>(steps.size()), by, Duration{});
      history.remove(version, by);
      if (version == 1) history.drop();
    }
    add_if_there(history, "commit");
  };
  for (int version = from + 1; version <= to; ++version) write(version, true);
  for (int version = from; version > to; --version) write(version, false);
  return recorder.text();
}

}  // namespace dlock::migrate
