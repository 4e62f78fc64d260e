// Which options of a migration are valid, and how its database is reached.
#include "api/migration.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <utility>

namespace dlock {
inline namespace v0 {
namespace schema {
namespace {

void check(const Options& options) {
  const auto refuse_negative = [](std::string_view what, Duration value) {
    if (value < Duration{}) throw Error(Fault::misuse, fmt::format("{} {} us is negative", what, value.count()));
  };
  refuse_negative("the lock timeout", options.timeouts.lock);
  refuse_negative("the DDL lock timeout", options.timeouts.ddl_lock);
  refuse_negative("the statement timeout", options.timeouts.statement);
  if (options.timeouts.connect <= Duration{})
    throw Error(Fault::misuse,
                fmt::format("the connect timeout {} us must be longer than 0", options.timeouts.connect.count()));
}

}  // namespace

api::ResolvedUrl resolve(std::string_view url, const Options& options, bool writes) {
  check(options);
  dlock::dialects::ConnectOptions connect;
  connect.application = options.application;
  connect.prepared_statements = false;
  connect.waits_for_locks = true;
  connect.create = writes && !options.dry_run;
  return api::resolve(url, connect, options.credentials, options.timeouts.connect);
}

migrate::TableMigrator open(std::string_view url, const Options& options, bool writes) {
  auto resolved = resolve(url, options, writes);
  return {resolved.dialect, std::move(resolved.connector), options};
}

}  // namespace schema
}  // namespace v0
}  // namespace dlock
