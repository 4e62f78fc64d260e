// How a call of dlock::schema becomes a migrator, and how a migrator's refusals become verdicts.
#pragma once

#include "api/open.hpp"
#include "engine/faults.hpp"
#include "migrate/migrator.hpp"
#include "migrate/trigger_change.hpp"

#include <dlock/guard.hpp>
#include <dlock/schema.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace dlock {
inline namespace v0 {
namespace schema {

struct Opened {
  std::string target;
  migrate::TableMigrator migrator;
};

// Connects to nothing yet. `writes`: what is not there may be made. Throws Error{misuse}.
Opened open(std::string_view url, const Options& options, bool writes);

// What open() is made of. Throws Error{misuse}.
api::ResolvedUrl resolve(std::string_view url, const Options& options, bool writes);
migrate::MigrateOptions migrate_options(const Options& options);

// The dialect of dialects(), or of one of its URL schemes. Throws Error{misuse}.
const dlock::dialects::Dialect& dialect_named(std::string_view name);

// The names of the tables, checked. Throws Error{misuse}.
dlock::dialects::TableNames names_of(const Options& options);

Verdict verdict_of(migrate::SchemaState state) noexcept;

// Failures that say nothing about the table are the caller's exceptions; the rest is a verdict.
template <class Work>
Report reported(Work work) {
  try {
    return work();
  } catch (const migrate::MigrationError& error) {
    Report report;
    report.verdict = error.verdict();
    report.message = error.message();
    report.hint = error.hint();
    report.code = error.code();
    return report;
  } catch (const Failure& failure) {
    switch (failure.cause()) {
      case Cause::refused:
      case Cause::disconnected:
      case Cause::timed_out:
      case Cause::permission:
      case Cause::read_only: throw engine::to_error(failure, false);
      default: break;
    }
    Report report;
    report.verdict = failure.cause() == Cause::locked ? Verdict::locked : Verdict::failed;
    report.message = failure.what();
    report.code = failure.code();
    return report;
  }
}

// The same for what makes triggers and takes them away: `work` answers a migrate::Change.
template <class Work>
GuardReport reported_change(Work work) {
  GuardReport result;
  auto report = reported([&] {
    migrate::Change change = work();
    result.changed = change.changed;
    result.sql = std::move(change.script);
    Report good;
    good.message = std::move(change.message);
    return good;
  });
  result.verdict = report.verdict;
  result.message = std::move(report.message);
  result.hint = std::move(report.hint);
  result.code = std::move(report.code);
  return result;
}

}  // namespace schema
}  // namespace v0
}  // namespace dlock
