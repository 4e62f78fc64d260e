// How a migration is rehearsed: the same course, with every statement written down instead of sent.
#include "migrate/migration_lock.hpp"
#include "migrate/migrator.hpp"

#include <fmt/format.h>

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

}  // namespace

// False: there is not even a database, and the first write would make it.
bool TableMigrator::open_to_rehearse() {
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
  const bool there = open_to_rehearse();
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
        throw MigrationError(MigrationError::Reason::locked, assessment.message, assessment.hint);
      refuse_missing_schema(found);
      recorder_->comment(
          fmt::format("{}version {}: {}", up ? "" : "taking back ", next->migration->version, next->migration->name));
      MigrationLock lock(*history_, options_.lock, [](const std::string&) {});
      lock.enter(options_.ddl_lock_timeout, options_.statement_timeout);
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

}  // namespace dlock::migrate
