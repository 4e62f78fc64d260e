// How a migration looks as a script that a person can read, review and run.
#include "migrate/migration_lock.hpp"
#include "migrate/migrator.hpp"
#include "migrate/script_recorder.hpp"

#include <fmt/format.h>

namespace dlock::migrate {
namespace {

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
