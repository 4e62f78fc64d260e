// The course of a migration: look, lock, look again, take the steps that are left, write it down.
#include "migrate/migrator.hpp"

#include "migrate/migration_lock.hpp"
#include "types/owner.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dlock::migrate {
namespace {

// Outlives any one statement of a migration here, and is short enough to wait for after a migrator was killed.
constexpr Duration row_lease = std::chrono::seconds{10};
}  // namespace

TableMigrator::TableMigrator(const dialects::Dialect& dialect, std::unique_ptr<dialects::Connector> connector,
                             MigrateOptions options)
    : dialect_(dialect),
      connector_(std::move(connector)),
      options_(std::move(options)),
      migrations_(migrations_of(dialect)),
      who_{options_.tool_version, options_.applied_by, random_identity()} {}

TableMigrator::~TableMigrator() = default;

Migrated TableMigrator::up(std::optional<int> to) {
  const int latest = static_cast<int>(migrations_.size());
  if (to && (*to < 1 || *to > latest))
    throw Error(Fault::misuse,
                fmt::format("the version {} does not exist; this dlock knows versions 1 to {}", *to, latest));
  return options_.dry_run ? dry_run(true, to.value_or(latest), false) : run(true, to.value_or(latest), false);
}

Migrated TableMigrator::down(int to, bool force) {
  if (to < 0) throw Error(Fault::misuse, fmt::format("the version {} does not exist; 0 is the empty database", to));
  return options_.dry_run ? dry_run(false, to, force) : run(false, to, force);
}

Migrated TableMigrator::run(bool up, int target, bool force) {
  const auto deadline = later(BootClock::now(), options_.timeouts.lock);
  Migrated result;
  bool begun = false, reconnected = false, waiting = false;
  unsigned tries = 0;
  for (;;) {
    open();
    step_.reset();
    std::optional<MigrationStep> next;
    std::string holder;
    try {
      // Without a lock, and without making anything: most runs end here.
      auto found = look();
      auto assessment = judge(found);
      refuse_unless_movable(assessment);
      if (!std::exchange(begun, true)) result.from = assessment.current;
      if (!(next = next_step(found, up, target))) {
        result.to = assessment.current;
        result.message = assessment.message;
        return result;
      }
      refuse_missing_schema(found);
      stop_point();

      MigrationLock lock(*history_, options_, canceller_.get(), [this](const std::string& text) { tell(text); });
      if (lock.enter()) {
        found = history_->find(soon());
        assessment = judge(found);
        refuse_unless_movable(assessment);
        if (!(next = next_step(found, up, target))) continue;
        const auto* row = found.row(next->migration->version);
        if (row == nullptr || !row->running() || own(*row) || row->lease_left <= Duration{}) {
          apply(*next, found, force);
          lock.commit();
          result.done.push_back(*next->migration);
          tries = 0;
          continue;
        }
        holder = assessment.message;
      } else if (BootClock::now() >= deadline || !waiting) {
        holder = lock.holder();
      }
    } catch (const MigrationError& error) {
      if (next && error.verdict() == Verdict::stopped) give_up(*next, error, tries);
      if (next && error.verdict() == Verdict::drift) record(*next, error);
      throw;
    } catch (const Failure& failure) {
      if (cut_off(failure)) {
        const MigrationError stopped(Verdict::stopped, "cut off as asked", {}, failure.code());
        if (next) give_up(*next, stopped, tries);
        throw stopped;
      }
      const bool after_steps = next && step_ == next->steps().size();
      const bool lost = !reconnected && (failure.cause() == Cause::disconnected ||
                                         (failure.cause() == Cause::timed_out && after_steps));
      if (!next || (!lost && (!is_conflict(failure.cause()) || tries >= options_.ddl_retries))) {
        if (!next) rethrow_with_right(failure, "read_only");
        give_up(*next, failure, tries);
      }
      // What was done is in the database: look again.
      reconnected = reconnected || lost;
      ++tries;
      tell(fmt::format("version {}: {}; trying again", next->migration->version, failure.what()));
      pause(std::chrono::milliseconds{100} * std::min(tries * tries, 30U));
      continue;
    }
    if (BootClock::now() >= deadline) refuse_locked(holder);
    if (!std::exchange(waiting, true))
      tell(holder.empty() ? "waiting for another migrator" : "waiting for another migrator: " + holder);
    pause(std::chrono::milliseconds{200});
  }
}

std::optional<TableMigrator::MigrationStep> TableMigrator::next_step(const SchemaSnapshot& found, bool up,
                                                                     int target) const {
  if (up) {
    const auto current = judge(found).current;
    if (current >= target) return std::nullopt;
    return MigrationStep{true, &migrations_[static_cast<std::size_t>(current)]};
  }
  if (found.rows.empty() || found.rows.back().version <= target) return std::nullopt;
  const auto version = found.rows.back().version;
  if (version > static_cast<int>(migrations_.size()))
    throw MigrationError(Verdict::incompatible,
                         fmt::format("version {} was made by a newer dlock; this one knows versions up to {}", version,
                                     migrations_.size()),
                         "take it back with the dlock that made it");
  return MigrationStep{false, &migrations_[static_cast<std::size_t>(version - 1)]};
}

void TableMigrator::apply(const MigrationStep& next, const SchemaSnapshot& found, bool force) {
  if (!next.up && !force) refuse_live_leases(found);
  if (!next.up && next.migration->version == 1) refuse_kept_history();
  begin_version(next, found);
  run_steps(next);
  if (next.up ? !history_->finish(next.migration->version, who_, soon())
              : !history_->remove(next.migration->version, who_, soon()))
    throw MigrationError(Verdict::locked,
                         fmt::format("another migrator has taken over version {}", next.migration->version),
                         "look with \"dlock-migrate status\"");
  if (!next.up && found.rows.size() == 1) history_->drop(soon());
}

void TableMigrator::begin_version(const MigrationStep& next, const SchemaSnapshot& found) {
  const auto version = next.migration->version;
  if (!found.schema) history_->script(history_->text("create_schema"), soon());
  if (!found.history) history_->create(soon());
  if (const auto* row = found.row(version); row != nullptr) {
    if (row->running() && own(*row)) return;
    const auto done = next.up ? std::min(row->steps_done, static_cast<int>(next.steps().size())) : 0;
    if (!history_->take(version, done, static_cast<int>(next.steps().size()), who_, row_lease, soon()))
      throw Failure(Cause::locked, fmt::format("another migrator began version {}", version));
    return;
  }
  try {
    history_->insert(*next.migration, who_, row_lease, soon());
  } catch (const Failure& failure) {
    if (transactional() || !connection_->usable()) throw;
    const auto now = history_->find(soon());
    const auto* other = now.row(version);
    if (other == nullptr || own(*other)) throw;
    throw Failure(Cause::locked, fmt::format("another migrator began version {}", version));
  }
}

void TableMigrator::run_steps(const MigrationStep& next) {
  const auto& steps = next.steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    step_ = i;
    stop_point();
    // The renewal comes before the step: a migrator that has lost its row changes nothing any more.
    if (!history_->journal(next.migration->version, who_, static_cast<int>(i), row_lease, soon()))
      throw MigrationError(Verdict::locked,
                           fmt::format("another migrator has taken over version {} before step {}/{}",
                                       next.migration->version, i + 1, steps.size()),
                           "look with \"dlock-migrate status\"");
    const auto what =
        fmt::format("version {}, step {}/{}: {}", next.migration->version, i + 1, steps.size(), steps[i].title);
    if (!transactional() && !simulated_) {
      const auto state = history_->probe(next.up, next.migration->version, i, soon());
      if (state == 1) {
        tell(what + ": done before");
        note(what + ": done before");
        continue;
      }
      if (state.value_or(0) != 0)
        throw MigrationError(
            Verdict::drift,
            fmt::format("{}: what is there is neither the state before this step nor the one after it", what),
            "compare with \"dlock-migrate sql\", put it right, and " + hint_command("up", table_));
    }
    note(what);
    history_->run_step(steps[i], of_step());
    simulated_ = recorder_ != nullptr;
    tell(what);
  }
  step_ = steps.size();
}

}  // namespace dlock::migrate
