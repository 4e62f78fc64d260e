// How a call of dlock::schema becomes a migrator, and how a migrator's refusals become a SchemaState.
#pragma once

#include "api/open.hpp"
#include "engine/faults.hpp"
#include "migrate/migrator.hpp"

#include <dlock/schema.hpp>

#include <string_view>

namespace dlock {
inline namespace v0 {
namespace schema {

// Connects to nothing yet. `writes`: what is not there may be made. Throws Error{misuse}.
migrate::TableMigrator open(std::string_view url, const Options& options, bool writes);
api::ResolvedUrl resolve(std::string_view url, const Options& options, bool writes);

// The dialect of dialects(), or of one of its URL schemes. Throws Error{misuse}.
const dlock::dialects::Dialect& dialect_named(std::string_view name);

// The report that `work` answers. Failures that say nothing about the table are the caller's exceptions; the rest is a
// state.
template <class Work>
auto reported(Work work) -> decltype(work()) {
  decltype(work()) report;
  try {
    return work();
  } catch (const migrate::MigrationError& error) {
    report.state = error.state();
    report.message = error.message();
    report.hint = error.hint();
    if constexpr (requires { report.code; }) report.code = error.code();
  } catch (const Failure& failure) {
    switch (failure.cause()) {
      case Cause::refused:
      case Cause::disconnected:
      case Cause::timed_out:
      case Cause::permission:
      case Cause::read_only: throw engine::to_error(failure, false);
      default: break;
    }
    report.state = failure.cause() == Cause::locked ? SchemaState::locked : SchemaState::failed;
    report.message = failure.what();
    if constexpr (requires { report.code; }) report.code = failure.code();
  }
  return report;
}

}  // namespace schema
}  // namespace v0
}  // namespace dlock
