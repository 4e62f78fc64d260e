// The calls of dlock::schema that look at a database, or need none.
#include "api/migration.hpp"
#include "types/name.hpp"

#include <dlock/error.hpp>
#include <dlock/schema.hpp>
#include <dlock/version.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace dlock {
inline namespace v0 {
namespace schema {
namespace {

Version::Time time_of(std::int64_t microseconds) { return Version::Time{Duration{microseconds}}; }

Version version_of(const migrate::HistoryRow& row, bool known) {
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

Version version_of(const migrate::Migration& migration) {
  Version version;
  version.number = migration.version;
  version.name = migration.name;
  version.state = "pending";
  version.known = true;
  version.checksum = migration.checksum;
  version.min_client = migration.min_client;
  version.steps_total = static_cast<int>(migration.up.size());
  return version;
}

std::string_view word_of(Role role) {
  switch (role) {
    case Role::migrator: return "migrator";
    case Role::runtime: return "runtime";
    case Role::read_only: return "read_only";
  }
  throw Error(Fault::misuse, "the role is none of dlock::schema::Role");
}

Status survey(std::string_view url, const Options& options, bool thorough, std::optional<Role> role = {}) {
  auto opened = open(url, options, false);
  migrate::Surveyed surveyed;
  const auto failed = reported([&] {
    Report report;
    try {
      surveyed = opened.migrator.survey(thorough, role ? word_of(*role) : std::string_view{});
    } catch (const Failure& failure) {
      if (failure.cause() != Cause::schema || dynamic_cast<const migrate::MigrationError*>(&failure) != nullptr) throw;
      report.verdict = Verdict::pending;  // there is not even a database
      report.message = failure.what();
    }
    return report;
  });
  Status status;
  status.target = opened.target;
  status.table = options.table;
  status.latest = static_cast<int>(opened.migrator.migrations().size());
  status.verdict = failed.verdict;
  status.message = failed.message;
  status.hint = failed.hint;
  if (failed.verdict == Verdict::pending)
    for (const auto& migration : opened.migrator.migrations()) status.versions.push_back(version_of(migration));
  if (failed.verdict != Verdict::good) return status;

  const auto& assessment = surveyed.assessment;
  status.verdict = verdict_of(assessment.state);
  status.message = assessment.message;
  status.hint = assessment.hint;
  status.server = surveyed.server;
  status.schema = surveyed.names.schema;
  status.table = surveyed.names.lock;
  status.current = assessment.current;
  status.table_exists = surveyed.found.lock;
  status.history_exists = surveyed.found.history;
  for (const auto& row : surveyed.found.rows)
    status.versions.push_back(version_of(row, row.version <= assessment.latest));
  for (const auto& migration : opened.migrator.migrations())
    if (std::none_of(status.versions.begin(), status.versions.end(),
                     [&](const Version& v) { return v.number == migration.version; }) &&
        migration.version > assessment.current)
      status.versions.push_back(version_of(migration));
  std::sort(status.versions.begin(), status.versions.end(),
            [](const Version& a, const Version& b) { return a.number < b.number; });
  status.differences = surveyed.differences;
  if (!status.differences.empty()) {
    status.verdict = Verdict::drift;
    status.message = fmt::format("the table {} is not what version {} should be: {}", migrate::shown(surveyed.names),
                                 status.current, fmt::join(status.differences, "; "));
    status.hint = surveyed.cure;
  }
  return status;
}

void check_role(std::string_view name) {
  if (name.empty() || name.find_first_of(std::string_view("\0\n\r", 3)) != std::string_view::npos)
    throw Error(Fault::misuse,
                fmt::format("the role {} is not a name: it is empty, or of several lines", in_quotes(name)));
}

}  // namespace

const dlock::dialects::Dialect& dialect_named(std::string_view name) {
  std::string known;
  for (const auto* dialect : dlock::dialects::all()) {
    if (dialect->name() == name) return *dialect;
    for (const auto scheme : dialect->traits().schemes)
      if (scheme == name) return *dialect;
    known += known.empty() ? "" : ", ";
    known += dialect->name();
  }
  throw Error(Fault::misuse, fmt::format("the dialect {} is unknown; this build knows {}", in_quotes(name), known));
}

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

Status status(std::string_view url, const Options& options) { return survey(url, options, false); }
Status check(std::string_view url, const Options& options, std::optional<Role> role) {
  return survey(url, options, true, role);
}

Structure dump(std::string_view url, const Options& options) {
  auto opened = open(url, options, false);
  Structure result;
  migrate::Dumped dumped;
  try {
    dumped = opened.migrator.dump();
  } catch (const Failure& failure) { throw engine::to_error(failure, false); }
  result.target = opened.target;
  result.server = std::move(dumped.server);
  result.schema = dumped.names.schema;
  result.table = dumped.names.lock;
  result.version = dumped.version;
  result.lines = std::move(dumped.structure);
  result.details = std::move(dumped.details);
  return result;
}

std::string grants(std::string_view url, Role role, std::string_view name, const Options& options) {
  check_role(name);
  auto opened = open(url, options, false);
  try {
    return opened.migrator.grants(word_of(role), name);
  } catch (const Failure& failure) { throw engine::to_error(failure, false); }
}

std::string grants_for(std::string_view dialect, Role role, std::string_view name, const Options& options) {
  check_role(name);
  return migrate::grants_of(dialect_named(dialect), names_of(options), word_of(role), name);
}

std::vector<std::string> dialects() {
  std::vector<std::string> names;
  for (const auto* dialect : dlock::dialects::all()) names.emplace_back(dialect->name());
  return names;
}

int latest(std::string_view dialect) { return static_cast<int>(dialect_named(dialect).texts().migrations.size()); }

std::string sql(std::string_view dialect, int from, int to, const Options& options, bool with_history) {
  const auto& found = dialect_named(dialect);
  const auto last = static_cast<int>(found.texts().migrations.size());
  for (const int version : {from, to})
    if (version < 0 || version > last)
      throw Error(Fault::misuse,
                  fmt::format("the version {} does not exist; this dlock knows versions 0 to {}", version, last));
  return migrate::script_of(found, names_of(options), from, to, with_history, DLOCK_VERSION);
}

}  // namespace schema
}  // namespace v0
}  // namespace dlock
