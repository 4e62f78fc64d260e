// This file knows the way from a call of dlock::schema to the migrator, and from its refusals to verdicts.
#include "api/open.hpp"
#include "engine/faults.hpp"
#include "store/migrator.hpp"
#include "types/name.hpp"

#include <dlock/error.hpp>
#include <dlock/schema.hpp>
#include <dlock/version.hpp>

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace dlock {
inline namespace v0 {
namespace schema {
namespace {

std::string user_at_host() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host.front() = '\0';
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer{};
  if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0) found = nullptr;
  return fmt::format("{}@{}", found != nullptr ? std::string(entry.pw_name) : std::to_string(::geteuid()), host.data());
}

dlock::dialects::TableNames names_of(const Options& options) {
  check_identifier("the table", options.table);
  if (!options.schema.empty()) check_identifier("the schema", options.schema);
  if (!options.history_table.empty()) check_identifier("the history table", options.history_table);
  dlock::dialects::TableNames names;
  names.schema = options.schema;
  names.lock = options.table;
  names.history = options.history_table.empty() ? options.table + "_schema_history" : options.history_table;
  if (names.history == names.lock || names.history == names.status() || names.history == names.waiter())
    throw Error(Fault::misuse, fmt::format("the history table {} has the name of another table of dlock", in_quotes(names.history)));
  return names;
}

void check(const Options& options) {
  const auto refuse_negative = [](std::string_view what, Duration value) {
    if (value < Duration{}) throw Error(Fault::misuse, fmt::format("{} {} us is negative", what, value.count()));
  };
  refuse_negative("the lock timeout", options.lock_timeout);
  refuse_negative("the DDL lock timeout", options.ddl_lock_timeout);
  refuse_negative("the statement timeout", options.statement_timeout);
  if (options.connect_timeout <= Duration{})
    throw Error(Fault::misuse, fmt::format("the connect timeout {} us must be longer than 0", options.connect_timeout.count()));
}

struct Opened {
  std::string target;
  store::TableMigrator migrator;
};

Opened open(std::string_view url, const Options& options, bool writes) {
  check(options);
  auto names = names_of(options);
  dlock::dialects::ConnectOptions connect;
  connect.application = options.application;
  connect.prepared_statements = false;
  connect.create = writes && !options.dry_run;
  auto door = api::find_door(url, connect);
  store::MigrateOptions migrate;
  migrate.names = std::move(names);
  migrate.tool_version = DLOCK_VERSION;
  migrate.applied_by = user_at_host();
  migrate.connect_timeout = options.connect_timeout;
  migrate.lock_timeout = options.lock_timeout;
  migrate.ddl_lock_timeout = options.ddl_lock_timeout;
  migrate.ddl_retries = options.ddl_retries;
  migrate.statement_timeout = options.statement_timeout;
  migrate.create_schema = options.create_schema;
  migrate.lock = options.lock;
  migrate.dry_run = options.dry_run;
  migrate.stop = options.stop;
  migrate.observer = options.observer;
  std::string target = door.connector->target();
  return {std::move(target), store::TableMigrator(door.dialect, std::move(door.connector), std::move(migrate))};
}

Verdict verdict_of(store::Obstacle::Kind kind) noexcept {
  using Kind = store::Obstacle::Kind;
  switch (kind) {
    case Kind::failed: return Verdict::failed;
    case Kind::pending: return Verdict::pending;
    case Kind::drift: return Verdict::drift;
    case Kind::interrupted: return Verdict::interrupted;
    case Kind::locked: return Verdict::locked;
    case Kind::incompatible: return Verdict::incompatible;
    case Kind::stopped: return Verdict::stopped;
  }
  return Verdict::failed;
}

Verdict verdict_of(store::Standing standing) noexcept {
  using store::Standing;
  switch (standing) {
    case Standing::good: return Verdict::good;
    case Standing::pending: return Verdict::pending;
    case Standing::at_work: return Verdict::locked;
    case Standing::interrupted: return Verdict::interrupted;
    case Standing::unrecorded:
    case Standing::drift: return Verdict::drift;
    case Standing::incompatible: return Verdict::incompatible;
  }
  return Verdict::failed;
}

// Failures that say nothing about the table are the caller's exceptions; the rest is a verdict.
template <class Work>
Report reported(Work work) {
  try {
    return work();
  } catch (const store::Obstacle& obstacle) {
    Report report;
    report.verdict = verdict_of(obstacle.kind());
    report.message = obstacle.message();
    report.hint = obstacle.hint();
    report.code = obstacle.code();
    return report;
  } catch (const Failure& failure) {
    switch (failure.cause()) {
      case Cause::refused:
      case Cause::disconnected:
      case Cause::timed_out:
      case Cause::permission:
      case Cause::read_only: throw engine::told(failure, false);
      default: break;
    }
    Report report;
    report.verdict = failure.cause() == Cause::locked ? Verdict::locked : Verdict::failed;
    report.message = failure.what();
    report.code = failure.code();
    return report;
  }
}

Report report_of(const store::Migrated& migrated) {
  Report report;
  report.message = migrated.message;
  report.from = migrated.from;
  report.to = migrated.to;
  for (const auto& leg : migrated.done) report.versions.push_back(leg.version);
  report.plan = migrated.plan;
  return report;
}

Version::Time time_of(std::int64_t microseconds) { return Version::Time{Duration{microseconds}}; }

Version version_of(const store::HistoryRow& row, bool known) {
  Version version;
  version.number = row.version;
  version.name = row.name;
  version.state = row.state;
  version.known = known;
  version.checksum = row.checksum;
  version.min_client = row.min_client;
  version.steps_done = row.steps_done;
  version.steps_total = row.steps_total;
  version.started = time_of(row.started_at);
  if (row.finished_at) version.finished = time_of(*row.finished_at);
  version.tool_version = row.tool_version;
  version.applied_by = row.applied_by;
  version.error = row.error;
  return version;
}

Version version_of(const store::Leg& leg) {
  Version version;
  version.number = leg.version;
  version.name = leg.name;
  version.state = "pending";
  version.known = true;
  version.checksum = leg.checksum;
  version.min_client = leg.min_client;
  version.steps_total = static_cast<int>(leg.up.size());
  return version;
}

Status survey(std::string_view url, const Options& options, bool thorough) {
  auto opened = open(url, options, false);
  store::Surveyed surveyed;
  const auto failed = reported([&] {
    Report report;
    try {
      surveyed = opened.migrator.survey(thorough);
    } catch (const Failure& failure) {
      if (failure.cause() != Cause::schema || dynamic_cast<const store::Obstacle*>(&failure) != nullptr) throw;
      report.verdict = Verdict::pending;  // there is not even a database
      report.message = failure.what();
    }
    return report;
  });
  Status status;
  status.target = opened.target;
  status.table = options.table;
  status.latest = static_cast<int>(opened.migrator.road().size());
  status.verdict = failed.verdict;
  status.message = failed.message;
  status.hint = failed.hint;
  if (failed.verdict == Verdict::pending)
    for (const auto& leg : opened.migrator.road()) status.versions.push_back(version_of(leg));
  if (failed.verdict != Verdict::good) return status;

  const auto& assessment = surveyed.assessment;
  status.verdict = verdict_of(assessment.standing);
  status.message = assessment.message;
  status.hint = assessment.hint;
  status.server = surveyed.server;
  status.schema = surveyed.names.schema;
  status.table = surveyed.names.lock;
  status.current = assessment.current;
  status.table_exists = surveyed.found.lock;
  status.history_exists = surveyed.found.history;
  for (const auto& row : surveyed.found.rows) status.versions.push_back(version_of(row, row.version <= assessment.latest));
  for (const auto& leg : opened.migrator.road())
    if (std::none_of(status.versions.begin(), status.versions.end(), [&](const Version& v) { return v.number == leg.version; }) &&
        leg.version > assessment.current)
      status.versions.push_back(version_of(leg));
  std::sort(status.versions.begin(), status.versions.end(), [](const Version& a, const Version& b) { return a.number < b.number; });
  status.differences = surveyed.differences;
  if (!status.differences.empty()) {
    status.verdict = Verdict::drift;
    status.message = fmt::format("the table {} is not what version {} should be: {}", store::shown(surveyed.names),
                                 status.current, fmt::join(status.differences, "; "));
    status.hint = "compare with \"dlock-migrate sql\"";
  }
  return status;
}

const dlock::dialects::Dialect& dialect_named(std::string_view name) {
  std::string known;
  for (const auto* dialect : dlock::dialects::all()) {
    if (dialect->name() == name) return *dialect;
    for (const auto scheme : dialect->schemes())
      if (scheme == name) return *dialect;
    known += known.empty() ? "" : ", ";
    known += dialect->name();
  }
  throw Error(Fault::misuse, fmt::format("the dialect {} is unknown; this build knows {}", in_quotes(name), known));
}

}  // namespace

std::string_view to_string(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::good: return "good";
    case Verdict::failed: return "failed";
    case Verdict::pending: return "pending";
    case Verdict::drift: return "drift";
    case Verdict::interrupted: return "interrupted";
    case Verdict::locked: return "locked";
    case Verdict::incompatible: return "incompatible";
    case Verdict::stopped: return "stopped";
  }
  return "failed";
}

Report up(std::string_view url, const Options& options, std::optional<int> to) {
  auto opened = open(url, options, true);
  return reported([&] { return report_of(opened.migrator.up(to)); });
}

Report down(std::string_view url, int to, const Options& options, bool force) {
  auto opened = open(url, options, false);
  return reported([&] { return report_of(opened.migrator.down(to, force)); });
}

Report plan(std::string_view url, const Options& options, std::optional<int> to) {
  auto dry = options;
  dry.dry_run = true;
  return up(url, dry, to);
}

Status status(std::string_view url, const Options& options) { return survey(url, options, false); }
Status check(std::string_view url, const Options& options) { return survey(url, options, true); }

std::vector<std::string> dialects() {
  std::vector<std::string> names;
  for (const auto* dialect : dlock::dialects::all()) names.emplace_back(dialect->name());
  return names;
}

int latest(std::string_view dialect) { return static_cast<int>(dialect_named(dialect).migrations().size()); }

std::string sql(std::string_view dialect, int from, int to, const Options& options, bool with_history) {
  const auto& found = dialect_named(dialect);
  const auto last = static_cast<int>(found.migrations().size());
  for (const int version : {from, to})
    if (version < 0 || version > last)
      throw Error(Fault::misuse, fmt::format("the version {} does not exist; this dlock knows versions 0 to {}", version, last));
  return store::script_of(found, names_of(options), from, to, with_history, DLOCK_VERSION);
}

}  // namespace schema
}  // namespace v0
}  // namespace dlock
