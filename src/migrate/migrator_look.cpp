// What the migrator tells and writes nothing for: what is there, what a migration would send, and scripts for people.
#include "migrate/migration_lock.hpp"
#include "migrate/migrator.hpp"
#include "migrate/script_recorder.hpp"
#include "migrate/structure.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace dlock::migrate {
namespace {

// What would be found after that one.
void simulate_up(SchemaSnapshot& found, const Migration& migration) {
  found.schema = found.lock = found.history = true;
  auto at = std::find_if(found.rows.begin(), found.rows.end(),
                         [&](const HistoryRow& row) { return row.version >= migration.version; });
  if (at == found.rows.end() || at->version != migration.version) at = found.rows.insert(at, HistoryRow{});
  at->version = migration.version;
  at->name = migration.name;
  at->checksum = migration.checksum;
  at->state = "applied";
  at->steps_done = at->steps_total = static_cast<int>(migration.up.size());
  at->min_client = migration.min_client;
}

void simulate_down(SchemaSnapshot& found) {
  found.rows.pop_back();
  found.lock = found.history = !found.rows.empty();
}

void add_steps(ScriptRecorder& recorder, History& history, const std::vector<Step>& steps) {
  for (const auto& step : steps) {
    recorder.comment(step.title);
    history.run_step(step, soon());
  }
}

void add_if_there(History& history, std::string_view statement) {
  if (history.has(statement)) history.script(history.text(statement), soon());
}

}  // namespace

Surveyed TableMigrator::survey(bool thorough, std::string_view role) {
  if (role == "migrator")
    throw Error(Fault::misuse,
                "what the role that migrates lacks is known only when it does: up says so; grants tells what it needs");
  open();
  try {
    Surveyed result{connection_->server(), history_->names(), {}, {}, {}, {}};
    const auto& names = result.names;
    result.found = look(true);
    result.assessment = judge(result.found);
    const auto& assessment = result.assessment;
    const auto version = assessment.current;
    if (!role.empty() && result.found.lock)
      if (const auto missing = history_->missing_rights(role, soon()); !missing.empty())
        throw Failure(Cause::permission,
                      fmt::format("this role lacks rights: {}{}", fmt::join(missing, ", "), history_->needed(role)));
    if (assessment.state == SchemaState::unrecorded && !history_->may("select", "history", soon()))
      throw Failure(Cause::permission, fmt::format("there is no history {} that this role may see", names.history));
    if (!thorough || assessment.state != SchemaState::good || version > assessment.latest) return result;
    const Reading reading(*history_);
    result.differences = differences_from(version);
    if (result.differences.empty()) return result;
    const bool mendable = differences_from(version, false).empty();
    result.cure = mendable ? hint_command("repair", table_) + " to make it anew" : "compare with \"dlock-migrate sql\"";
    return result;
  } catch (const Failure& failure) { rethrow_with_right(failure, "read_only"); }
}

Dumped TableMigrator::dump() {
  open();
  try {
    const Reading reading(*history_);
    return {connection_->server(), history_->names(), judge(history_->find(soon())).current,
            history_->structure(soon()), history_->details(soon())};
  } catch (const Failure& failure) { rethrow_with_right(failure, "read_only"); }
}

std::string TableMigrator::grants(std::string_view role, std::string_view name) {
  open();
  auto text = grants_of(dialect_, history_->names(), role, name);
  if (history_->keeps_locks(soon()))
    if (const auto more = history_->grants(fmt::format("history_{}", role), dialect_.grantee(name)); !more.empty())
      text += "\n" + more;
  return text;
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
  return version > 0 && !history_->find(soon()).status && history_->may("see", "status", soon());
}

std::vector<std::string> TableMigrator::differences_from(int version, bool with_mendable) {
  auto expected = version == 0 ? std::vector<std::string>{} : migration(version).structure;
  if (version > 0 && !history_->find(soon()).status && (!with_mendable || !lacks_view(version)))
    std::erase_if(expected, [](const std::string& line) { return line.starts_with("status"); });
  auto found = history_->structure(soon());
  // A table of that name may be another program's.
  const bool ours =
      std::any_of(found.begin(), found.end(), [](const std::string& line) { return line.starts_with("lock.name: "); });
  const bool floor = !ours || history_->has_some_floor(soon());
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

// False: there is not even a database, and the first write would make it.
bool TableMigrator::open_for_dry_run() {
  try {
    open();
    return true;
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::schema) throw;
    recorder_ = std::make_unique<ScriptRecorder>(dialect_);
    history_ = std::make_unique<History>(*recorder_, dialect_, migrations_, options_.names);
    if (history_->has("create_schema")) throw;  // a database is made by a person where it can hold several schemas
    return false;
  }
}

Migrated TableMigrator::dry_run(bool up, int target, bool force) {
  const bool there = open_for_dry_run();
  try {
    SchemaSnapshot found;
    found.schema = true;
    if (there) found = look(true);
    std::optional<Reading> reading;
    if (there) reading.emplace(*history_);
    auto assessment = judge(found);
    refuse_unless_movable(assessment);
    Migrated result;
    result.from = assessment.current;
    for (auto next = next_step(found, up, target); next; next = next_step(found, up, target)) {
      if (assessment.state == SchemaState::at_work)
        throw MigrationError(Verdict::locked, assessment.message, assessment.hint);
      refuse_missing_schema(found);
      recorder_->comment(
          fmt::format("{}version {}: {}", up ? "" : "taking back ", next->migration->version, next->migration->name));
      MigrationLock lock(*history_, options_, nullptr, [](const std::string&) {});
      lock.enter();
      apply(*next, found, force);
      lock.commit();
      result.done.push_back(*next->migration);
      if (up) simulate_up(found, *next->migration);
      else simulate_down(found);
      assessment = judge(found);
    }
    result.to = assessment.current;
    result.message = assessment.message;
    result.plan = recorder_->text();
    return result;
  } catch (const Failure& failure) { rethrow_with_right(failure, "read_only"); }
}

std::string script_of(const dialects::Dialect& dialect, const dialects::TableNames& names, int from, int to,
                      bool with_history, std::string_view tool_version) {
  const auto migrations = migrations_of(dialect);
  ScriptRecorder recorder(dialect);
  History history(recorder, dialect, migrations, names);
  const Migrator by{std::string(tool_version), "dlock-migrate sql", "dlock-migrate sql"};
  recorder.comment(fmt::format("dlock {}, {}: from version {} to version {}", tool_version, dialect.name(), from, to));
  const auto migration = [&](int version) -> const Migration& {
    return migrations.at(static_cast<std::size_t>(version - 1));
  };
  for (int version = from + 1; version <= to; ++version) {
    recorder.comment(fmt::format("version {}: {}", version, migration(version).name));
    add_if_there(history, "begin");
    if (with_history && version == 1) history.create(soon());
    add_steps(recorder, history, migration(version).up);
    if (with_history) {
      history.insert(migration(version), by, Duration{}, soon());
      history.finish(version, by, soon());
    }
    add_if_there(history, "commit");
  }
  for (int version = from; version > to; --version) {
    recorder.comment(fmt::format("taking back version {}: {}", version, migration(version).name));
    add_if_there(history, "begin");
    add_steps(recorder, history, migration(version).down);
    if (with_history) {
      history.take(version, 0, static_cast<int>(migration(version).down.size()), by, Duration{}, soon());
      history.remove(version, by, soon());
    }
    if (with_history && version == 1) history.drop(soon());
    add_if_there(history, "commit");
  }
  return recorder.text();
}

}  // namespace dlock::migrate
