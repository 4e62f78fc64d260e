// This file knows the order of things in a migration: look, lock, look again, walk the steps, write it down.
#include "store/migrator.hpp"

#include "store/cutting.hpp"
#include "store/migrator_round.hpp"
#include "types/owner.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dlock::store {
namespace {

// Outlives any one statement of a migration here, and is short enough to wait for after a migrator was killed.
constexpr Duration row_lease = std::chrono::seconds{10};
}  // namespace

TableMigrator::TableMigrator(const dialects::Dialect& dialect, std::unique_ptr<dialects::Connector> connector,
                             MigrateOptions options)
    : dialect_(dialect),
      connector_(std::move(connector)),
      options_(std::move(options)),
      road_(road_of(dialect)),
      who_{options_.tool_version, options_.applied_by, random_identity()} {}

TableMigrator::~TableMigrator() = default;

Migrated TableMigrator::up(std::optional<int> to) {
  const int latest = static_cast<int>(road_.size());
  if (to && (*to < 1 || *to > latest))
    throw Error(Fault::misuse, fmt::format("the version {} does not exist; this dlock knows versions 1 to {}", *to, latest));
  return options_.dry_run ? rehearse(true, to.value_or(latest), false) : run(true, to.value_or(latest), false);
}

Migrated TableMigrator::down(int to, bool force) {
  if (to < 0) throw Error(Fault::misuse, fmt::format("the version {} does not exist; 0 is the empty database", to));
  return options_.dry_run ? rehearse(false, to, force) : run(false, to, force);
}

Migrated TableMigrator::run(bool up, int target, bool force) {
  const auto deadline = later(BootClock::now(), options_.lock_timeout);
  Migrated result;
  bool begun = false, reconnected = false, waiting = false;
  unsigned tries = 0;
  for (;;) {
    open();
    step_.reset();
    std::optional<Walk> walk;
    std::string holder;
    try {
      // Without a lock, and without making anything: most runs end here.
      auto found = look();
      auto assessment = judge(found);
      refuse_unless_movable(assessment);
      if (!std::exchange(begun, true)) result.from = assessment.current;
      if (!(walk = next_walk(found, up, target))) {
        result.to = assessment.current;
        result.message = assessment.message;
        return result;
      }
      refuse_missing_schema(found);
      stop_point();

      Round round(*history_, options_.lock, [this](const std::string& text) { tell(text); });
      std::optional<Cutting> cutting(std::in_place, canceller_.get(), options_.cancel);  // ends before the round does
      if (round.enter(options_.ddl_lock_timeout, options_.statement_timeout)) {
        found = history_->find(soon());
        assessment = judge(found);
        refuse_unless_movable(assessment);
        if (!(walk = next_walk(found, up, target))) continue;
        const auto* row = found.row(walk->leg->version);
        if (row == nullptr || !row->running() || own(*row) || row->lease_left <= Duration{}) {
          apply(*walk, found, force);
          cutting.reset();
          round.commit();
          result.done.push_back(*walk->leg);
          tries = 0;
          continue;
        }
        holder = assessment.message;
      } else if (BootClock::now() >= deadline || !waiting) {
        holder = round.holder();
      }
    } catch (const Obstacle& obstacle) {
      if (walk && obstacle.kind() == Obstacle::Kind::stopped) give_up(*walk, obstacle, tries);
      if (walk && obstacle.kind() == Obstacle::Kind::drift) record(*walk, obstacle);
      throw;
    } catch (const Failure& failure) {
      if (cut_off(failure)) {
        const Obstacle stopped(Obstacle::Kind::stopped, "cut off as asked", {}, failure.code());
        if (walk) give_up(*walk, stopped, tries);
        throw stopped;
      }
      const bool after_steps = walk && step_ == walk->steps().size();
      const bool lost = !reconnected && (failure.cause() == Cause::disconnected ||
                                         (failure.cause() == Cause::timed_out && after_steps));
      if (!walk || (!lost && (!passing(failure.cause()) || tries >= options_.ddl_retries))) {
        if (!walk) rethrow_with_right(failure, "read_only");
        give_up(*walk, failure, tries);
      }
      // What was done is in the database: look again.
      reconnected = reconnected || lost;
      ++tries;
      tell(fmt::format("version {}: {}; trying again", walk->leg->version, failure.what()));
      pause(std::chrono::milliseconds{100} * std::min(tries * tries, 30U));
      continue;
    }
    if (BootClock::now() >= deadline) refuse_locked(holder);
    if (!std::exchange(waiting, true))
      tell(holder.empty() ? "waiting for another migrator" : "waiting for another migrator: " + holder);
    pause(std::chrono::milliseconds{200});
  }
}

std::optional<TableMigrator::Walk> TableMigrator::next_walk(const Found& found, bool up, int target) const {
  if (up) {
    const auto current = judge(found).current;
    if (current >= target) return std::nullopt;
    return Walk{true, &road_[static_cast<std::size_t>(current)]};
  }
  if (found.rows.empty() || found.rows.back().version <= target) return std::nullopt;
  const auto version = found.rows.back().version;
  if (version > static_cast<int>(road_.size()))
    throw Obstacle(Obstacle::Kind::incompatible,
                   fmt::format("version {} was made by a newer dlock; this one knows versions up to {}", version, road_.size()),
                   "take it back with the dlock that made it");
  return Walk{false, &road_[static_cast<std::size_t>(version - 1)]};
}

void TableMigrator::apply(const Walk& walk, const Found& found, bool force) {
  if (!walk.up && !force) refuse_live_leases(found);
  begin_version(walk, found);
  walk_steps(walk);
  if (walk.up ? !history_->finish(walk.leg->version, who_, soon()) : !history_->remove(walk.leg->version, who_, soon()))
    throw Obstacle(Obstacle::Kind::locked,
                   fmt::format("another migrator has taken over version {}", walk.leg->version), "look with \"dlock-migrate status\"");
  if (!walk.up && found.rows.size() == 1) history_->drop(soon());
}

void TableMigrator::begin_version(const Walk& walk, const Found& found) {
  const auto version = walk.leg->version;
  if (!found.schema) history_->script(history_->text("create_schema"), soon());
  if (!found.history) history_->create(soon());
  if (const auto* row = found.row(version); row != nullptr) {
    if (row->running() && own(*row)) return;
    const auto done = walk.up ? std::min(row->steps_done, static_cast<int>(walk.steps().size())) : 0;
    if (!history_->take(version, done, static_cast<int>(walk.steps().size()), who_, row_lease, soon()))
      throw Failure(Cause::locked, fmt::format("another migrator began version {}", version));
    return;
  }
  try {
    history_->insert(*walk.leg, who_, row_lease, soon());
  } catch (const Failure& failure) {
    if (transactional() || !connection_->usable()) throw;
    const auto now = history_->find(soon());
    const auto* other = now.row(version);
    if (other == nullptr || own(*other)) throw;
    throw Failure(Cause::locked, fmt::format("another migrator began version {}", version));
  }
}

void TableMigrator::walk_steps(const Walk& walk) {
  const auto& steps = walk.steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    step_ = i;
    stop_point();
    // The renewal comes before the step: a migrator that has lost its row changes nothing any more.
    if (!history_->journal(walk.leg->version, who_, static_cast<int>(i), row_lease, soon()))
      throw Obstacle(Obstacle::Kind::locked,
                     fmt::format("another migrator has taken over version {} before step {}/{}", walk.leg->version, i + 1,
                                 steps.size()),
                     "look with \"dlock-migrate status\"");
    const auto what = fmt::format("version {}, step {}/{}: {}", walk.leg->version, i + 1, steps.size(), steps[i].title);
    if (!transactional() && !imagined_) {
      const auto state = history_->probe(walk.up, walk.leg->version, i, soon());
      if (state == 1) {
        tell(what + ": done before");
        note(what + ": done before");
        continue;
      }
      if (state.value_or(0) != 0)
        throw Obstacle(Obstacle::Kind::drift,
                       fmt::format("{}: what is there is neither the state before this step nor the one after it", what),
                       "compare with \"dlock-migrate sql\", put it right, and " + hint_command("up", table_));
    }
    note(what);
    history_->run_step(steps[i], of_step());
    imagined_ = recorder_ != nullptr;
    tell(what);
  }
  step_ = steps.size();
}

}  // namespace dlock::store
