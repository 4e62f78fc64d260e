// The course of a migration: look, lock, look again, take the steps that are left, write it down; after which failures
// it is tried again, and for how long a version stays a migrator's own.
#include "migrate/migrator.hpp"

#include "migrate/migration_lock.hpp"
#include "types/owner.hpp"
#include "types/retry.hpp"

#include <dlock/error.hpp>
#include <dlock/version.hpp>

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace dlock::migrate {
namespace {

// Outlives any one statement of a migration here, and is short enough to wait for after a migrator was killed.
constexpr Duration row_lease = std::chrono::seconds{10};

std::string user_at_host() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host.front() = '\0';
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer{};
  if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0) found = nullptr;
  return fmt::format("{}@{}", found != nullptr ? std::string(entry.pw_name) : std::to_string(::geteuid()), host.data());
}

}  // namespace

TableMigrator::TableMigrator(const dialects::Dialect& dialect, std::unique_ptr<dialects::Connector> connector,
                             schema::Options options)
    : dialect_(dialect),
      connector_(std::move(connector)),
      options_(std::move(options)),
      names_(names_of(options_)),
      migrations_(migrations_of(dialect)),
      who_{DLOCK_VERSION, user_at_host(), random_identity()} {}

TableMigrator::~TableMigrator() = default;

schema::Report TableMigrator::up(std::optional<int> to) {
  if (to) check_known(*to);
  return run(true, to.value_or(latest()), false);
}

schema::Report TableMigrator::down(int to, bool force) {
  if (to < 0) throw Error(Fault::misuse, fmt::format("the version {} does not exist; 0 is the empty database", to));
  return run(false, to, force);
}

schema::Report TableMigrator::run(bool up, int target, bool force) {
  if (options_.dry_run) open_for_dry_run();
  auto progress = begin();
  std::optional<MigrationStep> next;
  bool reconnected = false;
  unsigned tries = 0;
  const auto decide = [&](const SchemaSnapshot& found, const Assessment& assessment) {
    refuse_unless_movable(assessment);
    next = next_step(found, up, target);
    if (!next) return false;
    refuse_missing_schema(found);
    note(fmt::format("{}version {}: {}", up ? "" : "taking back ", next->migration->version, next->migration->name));
    return true;
  };
  const auto again = [&](const Failure& failure) {
    if (const auto stopped = as_refusal(failure)) {
      if (next && !recorder_ && stopped->state() == SchemaState::stopped) give_up(*next, *stopped, tries);
      if (next && !recorder_ && stopped->state() == SchemaState::drift) record(*next, *stopped);
      throw MigrationError(*stopped);
    }
    if (!next || recorder_) rethrow_with_right(failure, "read_only");
    const bool after_steps = step_ == next->steps().size();
    const bool lost = !reconnected &&
                      (failure.cause() == Cause::disconnected || (failure.cause() == Cause::timed_out && after_steps));
    if (!lost && (!is_conflict(failure.cause()) || tries >= options_.ddl_retries)) give_up(*next, failure, tries);
    // What was done is in the database: look again.
    reconnected = reconnected || lost;
    tell(fmt::format("version {}: {}; trying again", next->migration->version, failure.what()));
    pause_before_retry(++tries, options_);
    return true;
  };
  for (;;) {
    const auto passed = retry(
        [&] {
          step_.reset();
          next.reset();
          return pass(progress, decide, [&](const SchemaSnapshot& found) { apply(*next, found, force); });
        },
        again);
    if (passed == Pass::nothing_to_do) return progress.report;
    if (passed == Pass::in_vain) continue;
    progress.report.versions.push_back(next->migration->version);
    tries = 0;
  }
}

TableMigrator::Pass TableMigrator::pass(MigrationProgress& progress,
                                        const std::function<bool(const SchemaSnapshot&, const Assessment&)>& decide,
                                        const std::function<void(const SchemaSnapshot&)>& carry_out) {
  open();
  // Without a lock, and without making anything: most calls end here.
  auto found = look(recorder_ != nullptr);
  std::optional<Reading> reading;
  if (recorder_ && connection_) reading.emplace(*history_);
  const auto assessment = judge(found);
  auto& report = progress.report;
  if (!std::exchange(progress.begun, true)) report.from = assessment.current;
  report.to = assessment.current;
  report.message = assessment.message;
  if (recorder_) report.plan = recorder_->text();
  if (!decide(found, assessment)) return Pass::nothing_to_do;
  if (recorder_ && other_at_work(found)) {
    if (assessment.state != SchemaState::locked) refuse_locked(assessment.message);
    throw MigrationError(SchemaState::locked, assessment.message, assessment.hint);
  }
  stop_point();

  std::string holder;
  {
    MigrationLock lock(*history_, options_, canceller_.get(), [this](const std::string& text) { tell(text); });
    if (lock.enter()) {
      if (!recorder_) {
        found = history_->find();
        const auto now = judge(found);
        if (other_at_work(found)) holder = now.message;
        else if (!decide(found, now)) return Pass::in_vain;
      }
      if (holder.empty()) {
        carry_out(found);
        lock.commit();
        if (recorder_) report.plan = recorder_->text();
        return Pass::done;
      }
    } else if (BootClock::now() >= progress.deadline || !progress.waiting) {
      holder = lock.holder();
    }
  }
  wait_for_other(progress, holder);
  return Pass::in_vain;
}

void TableMigrator::wait_for_other(MigrationProgress& progress, const std::string& holder) {
  if (BootClock::now() >= progress.deadline || recorder_) refuse_locked(holder);
  if (!std::exchange(progress.waiting, true))
    tell("waiting for another migrator" + (holder.empty() ? holder : ": " + holder));
  pause(std::chrono::milliseconds{200}, options_.stop);
}

bool TableMigrator::other_at_work(const SchemaSnapshot& found) const {
  return std::any_of(found.rows.begin(), found.rows.end(),
                     [this](const HistoryRow& row) { return row.at_work() && !own(row); });
}

std::optional<TableMigrator::MigrationStep> TableMigrator::next_step(const SchemaSnapshot& found, bool up,
                                                                     int target) const {
  if (up) {
    const auto current = judge(found).current;
    if (current >= target) return std::nullopt;
    return MigrationStep{true, &migration(current + 1)};
  }
  if (found.rows.empty() || found.rows.back().number <= target) return std::nullopt;
  const auto version = found.rows.back().number;
  if (version > latest())
    throw MigrationError(
        SchemaState::incompatible,
        fmt::format("version {} was made by a newer dlock; this one knows versions up to {}", version, latest()),
        "take it back with the dlock that made it");
  return MigrationStep{false, &migration(version)};
}

void TableMigrator::apply(const MigrationStep& next, const SchemaSnapshot& found, bool force) {
  if (!next.up && !force) refuse_live_leases(found);
  if (!next.up && next.migration->version == 1) refuse_kept_history();
  begin_version(next, found);
  run_steps(next);
  if (next.up ? !history_->finish(next.migration->version, who_) : !history_->remove(next.migration->version, who_))
    refuse_taken_over(next.migration->version);
  if (!next.up && found.rows.size() == 1) history_->drop();
  if (recorder_) simulate(next, found);
}

void TableMigrator::begin_version(const MigrationStep& next, const SchemaSnapshot& found) {
  const auto version = next.migration->version;
  if (!found.schema) history_->script(history_->text("create_schema"), soon());
  if (!found.history) history_->create();
  if (const auto* row = found.row(version); row != nullptr) {
    if (row->running() && own(*row)) return;
    const auto done = next.up ? std::min(row->steps_done, static_cast<int>(next.steps().size())) : 0;
    if (!history_->take(version, done, static_cast<int>(next.steps().size()), who_, row_lease))
      throw Failure(Cause::locked, fmt::format("another migrator began version {}", version));
    return;
  }
  try {
    history_->insert(*next.migration, who_, row_lease);
  } catch (const Failure& failure) {
    if (transactional() || !connection_->usable()) throw;
    const auto now = history_->find();
    const auto* other = now.row(version);
    if (other == nullptr || own(*other)) throw;
    throw Failure(Cause::locked, fmt::format("another migrator began version {}", version));
  }
}

void TableMigrator::run_steps(const MigrationStep& next) {
  const auto& steps = next.steps();
  // In a dry run the database is not what it is taken to be any more, once a statement was written down.
  bool asks = !transactional() && !simulated_;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    step_ = i;
    stop_point();
    // The renewal comes before the step: a migrator that has lost its row changes nothing any more.
    if (!history_->journal(next.migration->version, who_, static_cast<int>(i), row_lease))
      refuse_taken_over(next.migration->version, fmt::format(" before step {}/{}", i + 1, steps.size()));
    const auto what =
        fmt::format("version {}, step {}/{}: {}", next.migration->version, i + 1, steps.size(), steps[i].title);
    if (asks) {
      const auto state = history_->probe(next.up, next.migration->version, i);
      if (state == 1) {
        tell(what + ": done before");
        note(what + ": done before");
        continue;
      }
      if (state.value_or(0) != 0)
        throw MigrationError(
            SchemaState::drift,
            fmt::format("{}: what is there is neither the state before this step nor the one after it", what),
            "compare with \"dlock-migrate sql\", put it right, and " + hint_command("up", table_));
    }
    note(what);
    history_->run_step(steps[i], of_step());
    asks = asks && !recorder_;
    tell(what);
  }
  step_ = steps.size();
}

}  // namespace dlock::migrate
