// Which options of a migration are valid, and what a refusal means to a caller.
#include "api/migration.hpp"

#include "types/name.hpp"

#include <dlock/error.hpp>
#include <dlock/version.hpp>

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

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

dlock::dialects::TableNames names_of(const Options& options) {
  check_identifier("the table", options.table);
  if (!options.schema.empty()) check_identifier("the schema", options.schema);
  if (!options.history_table.empty()) check_identifier("the history table", options.history_table);
  dlock::dialects::TableNames names;
  names.schema = options.schema;
  names.lock = options.table;
  names.history = options.history_table.empty() ? options.table + "_schema_history" : options.history_table;
  if (names.history == names.lock || names.history == names.status() || names.history == names.waiter() ||
      names.history == names.holder())
    throw Error(Fault::misuse,
                fmt::format("the history table {} has the name of another table of dlock", in_quotes(names.history)));
  return names;
}

api::ResolvedUrl resolve(std::string_view url, const Options& options, bool writes) {
  dlock::dialects::ConnectOptions connect;
  connect.application = options.application;
  connect.prepared_statements = false;
  connect.waits_for_locks = true;
  connect.create = writes && !options.dry_run;
  return api::resolve(url, connect, options.credentials, options.timeouts.connect);
}

migrate::MigrateOptions migrate_options(const Options& options) {
  check(options);
  return {options, {}, DLOCK_VERSION, user_at_host()};
}

Opened open(std::string_view url, const Options& options, bool writes) {
  auto migrate = migrate_options(options);
  migrate.names = names_of(options);
  auto resolved = resolve(url, options, writes);
  std::string target = resolved.connector->target();
  return {std::move(target),
          migrate::TableMigrator(resolved.dialect, std::move(resolved.connector), std::move(migrate))};
}

Verdict verdict_of(migrate::SchemaState state) noexcept {
  using migrate::SchemaState;
  switch (state) {
    case SchemaState::good: return Verdict::good;
    case SchemaState::pending: return Verdict::pending;
    case SchemaState::at_work: return Verdict::locked;
    case SchemaState::interrupted: return Verdict::interrupted;
    case SchemaState::unrecorded:
    case SchemaState::drift: return Verdict::drift;
    case SchemaState::incompatible: return Verdict::incompatible;
  }
  return Verdict::failed;
}

}  // namespace schema
}  // namespace v0
}  // namespace dlock
