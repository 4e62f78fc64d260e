// How the history is put right where it does not tell what is there (adopt, mark as applied, discard), what repair
// makes anew, and what has to be so before that.
#include "migrate/migration_lock.hpp"
#include "migrate/migrator.hpp"
#include "types/retry.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

namespace dlock::migrate {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(Fault::misuse, what); }

// The last step up to a version that makes the view for people.
const Step* step_of_view(const std::vector<Migration>& migrations, int version) {
  for (auto migration = migrations.rend() - version; migration != migrations.rend(); ++migration)
    for (const auto& step : migration->up)
      if (step.sql.find("VIEW {{status}} AS") != std::string_view::npos) return &step;
  throw std::logic_error(fmt::format("no step up to version {} makes the view", version));
}

}  // namespace

schema::Report TableMigrator::baseline(int at) {
  check_known(at);
  return amend(at, [this, at](const SchemaSnapshot& found) -> Amendment {
    Amendment amendment{"baseline"};
    for (const auto& row : found.rows)
      if (row.number > at || row.state == "applied")
        refuse(fmt::format("the history {} says version {} already: baseline is for tables without one; {}",
                           history_->names().history, found.rows.back().number, hint_command("status", table_)));
    if (!found.lock)
      throw MigrationError(SchemaState::drift, fmt::format("there is no table {} to adopt", shown(history_->names())),
                           hint_command("up", table_) + " to make it");
    for (int version = 1; version <= at; ++version)
      if (const auto* row = found.row(version); row == nullptr || !row->done()) amendment.adopt.push_back(version);
    if (!amendment.adopt.empty()) refuse_different(at, fmt::format("baseline --at {}", at), "baseline --at {}");
    return amendment;
  });
}

schema::Report TableMigrator::mark_applied(int version) {
  check_known(version);
  return amend(version, [this, version](const SchemaSnapshot& found) -> Amendment {
    if (found.rows.empty())
      refuse(fmt::format("there is no history to repair; adopt the table {} with \"dlock-migrate baseline --at {}{}\"",
                         shown(history_->names()), version, table_.flags));
    if (const auto* row = found.row(version);
        row != nullptr && row->done() && row->checksum == migration(version).checksum)
      return {};
    if (version > 1)
      if (const auto* below = found.row(version - 1); below == nullptr || !below->done())
        refuse(fmt::format("version {} is not applied: mark it before version {}", version - 1, version));
    int highest = version;
    for (const auto& row : found.rows)
      if (row.done()) highest = std::max(highest, row.number);
    if (highest <= latest()) refuse_different(highest, fmt::format("repair --mark-applied {}", version), "up");
    return {"applied", {version}};
  });
}

schema::Report TableMigrator::discard(int version) {
  check_known(version);
  return amend(version, [this, version](const SchemaSnapshot& found) -> Amendment {
    const auto* row = found.row(version);
    if (row == nullptr) return {};
    if (row->done())
      refuse(fmt::format("version {} is applied: take it back with \"dlock-migrate down --to {}{}\"", version,
                         version - 1, table_.flags));
    if (row != &found.rows.back())
      refuse(fmt::format("version {} is above version {}: discard it first", found.rows.back().number, version));
    refuse_different(version - 1, fmt::format("repair --discard {}", version), "up");
    return {{}, {}, version};
  });
}

schema::Report TableMigrator::repair() {
  open();
  std::optional<int> unfinished, current;
  try {
    const auto found = look(true);
    const auto assessment = judge(found);
    refuse_unless_movable(assessment);
    for (const auto& row : found.rows)
      if (!row.done()) unfinished = row.number;
    if (!unfinished && assessment.current > 0 && assessment.current <= assessment.latest && found.lock)
      current = assessment.current;
    if (!unfinished && !current) {
      schema::Report nothing;
      nothing.from = nothing.to = assessment.current;
      nothing.message = nothing_half_done(assessment);
      return nothing;
    }
  } catch (const Failure& failure) { rethrow_with_right(failure, "read_only"); }
  return unfinished ? up(unfinished) : restore(*current);
}

std::string TableMigrator::nothing_half_done(const Assessment& assessment) const {
  if (assessment.state != SchemaState::pending) return assessment.message;
  return "no version is half done; what is pending is made by \"dlock-migrate up" + table_.flags + "\"";
}

schema::Report TableMigrator::restore(int current) {
  auto result = amend(current, [this, current](const SchemaSnapshot&) -> Amendment {
    Amendment amendment;
    if (const auto differences = differences_from(current, false); !differences.empty())
      throw MigrationError(SchemaState::drift,
                           fmt::format("the table {} is not what version {} should be: {}", shown(history_->names()),
                                       current, fmt::join(differences, "; ")),
                           "put it right by hand: compare with \"dlock-migrate sql\"");
    if (lacks_view(current)) amendment.view = step_of_view(migrations_, current);
    amendment.make_floor = !history_->has_some_floor();
    amendment.make_identity = !history_->has_identity();
    return amendment;
  });
  if (result.restored.empty()) result.message = nothing_half_done(judge(look()));
  return result;
}

schema::Report TableMigrator::amend(int to, const std::function<Amendment(const SchemaSnapshot&)>& decide) {
  auto progress = begin();
  auto& report = progress.report;
  Amendment amendment;
  const auto passed = [&] {
    return pass(
        progress,
        [&](const SchemaSnapshot& found, const Assessment& assessment) {
          if (assessment.state == SchemaState::incompatible)
            throw MigrationError(assessment.state, assessment.message, assessment.hint);
          if (other_at_work(found)) return true;
          amendment = decide(found);
          return !amendment.nothing();
        },
        [&](const SchemaSnapshot& found) { carry_out(amendment, found); });
  };
  const auto again = [&](const Failure& failure) {
    if (const auto refusal = as_refusal(failure)) throw MigrationError(*refusal);
    // Without a history it is the opening that has failed, which is no other migrator's doing.
    if (!history_ || !is_conflict(failure.cause())) rethrow_with_right(failure, "migrator");
    wait_for_other(progress, failure.what());
    return true;
  };
  for (;;) {
    const auto outcome = retry(passed, again);
    if (outcome == Pass::nothing_to_do) return report;
    if (outcome == Pass::done) break;
  }
  report.versions = amendment.adopt;
  if (amendment.discard) report.versions.push_back(*amendment.discard);
  report.to = to;
  if (amendment.view != nullptr) report.restored.push_back("view " + history_->names().status());
  if (amendment.make_floor || amendment.make_identity)
    report.restored.push_back("floor row of " + history_->names().lock);
  return report;
}

void TableMigrator::carry_out(const Amendment& amendment, const SchemaSnapshot& found) {
  if (amendment.view != nullptr) {
    note(amendment.view->title);
    history_->run_step(*amendment.view, of_step());
    tell(fmt::format("made the view {} anew", history_->names().status()));
  }
  auto there = found;
  for (const auto version : amendment.adopt) {
    note(fmt::format("version {}: {} is there", version, migration(version).name));
    begin_version(MigrationStep{true, &migration(version)}, there);
    there.history = true;
    if (!history_->adopt(migration(version), amendment.state, who_)) refuse_taken_over(version);
    tell(fmt::format("version {}: written into the history as {}", version, amendment.state));
  }
  if (amendment.make_floor) {
    note("the floor row, above every token that was ever handed out");
    history_->make_floor();
    tell("made the floor row anew, above every token that was ever handed out");
  }
  if (amendment.make_identity) {
    note("which installation this is");
    history_->make_identity();
  }
  if (!amendment.discard) return;
  const auto version = *amendment.discard;
  note(fmt::format("version {}: {} was not begun", version, migration(version).name));
  begin_version(MigrationStep{true, &migration(version)}, there);
  if (!history_->remove(version, who_)) refuse_taken_over(version);
  if (found.rows.size() == 1) history_->drop();
  tell(fmt::format("version {}: taken out of the history", version));
}

void TableMigrator::check_known(int version) const {
  if (version < 1 || version > latest())
    refuse(fmt::format("the version {} does not exist; this dlock knows versions 1 to {}", version, latest()));
}

void TableMigrator::refuse_different(int version, const std::string& command, std::string_view instead) {
  if (!options_.verify) return;
  const auto differences = differences_from(version);
  if (differences.empty()) return;
  for (int other = latest(); other > 0; --other)
    if (other != version && differences_from(other).empty())
      throw MigrationError(SchemaState::drift,
                           fmt::format("the tables are those of version {}, not of version {}", other, version),
                           hint_command(fmt::format(fmt::runtime(instead), other), table_));
  throw MigrationError(SchemaState::drift,
                       fmt::format("the table {} is not what version {} makes: {}", shown(history_->names()), version,
                                   fmt::join(differences, "; ")),
                       fmt::format("put it right (\"dlock-migrate dump{}\" shows it); or name another table with "
                                   "--table, if it belongs to another "
                                   "program; or, if it does not matter, {}",
                                   table_.flags, hint_command(command + " --no-verify", table_)));
}

}  // namespace dlock::migrate
