// The calls of dlock::schema that look at a database, or need none.
#include "api/migration.hpp"
#include "types/name.hpp"

#include <dlock/error.hpp>
#include <dlock/schema.hpp>
#include <dlock/version.hpp>

#include <fmt/format.h>

namespace dlock {
inline namespace v0 {
namespace schema {
namespace {

std::string_view word_of(Role role) {
  switch (role) {
    case Role::migrator: return "migrator";
    case Role::runtime: return "runtime";
    case Role::read_only: return "read_only";
  }
  throw Error(Fault::misuse, "the role is none of dlock::schema::Role");
}

Status survey(std::string_view url, const Options& options, bool thorough, std::optional<Role> role = {}) {
  auto migrator = open(url, options, false);
  auto status = reported([&] { return migrator.survey(thorough, role ? word_of(*role) : std::string_view{}); });
  status.target = migrator.target();
  status.latest = migrator.latest();
  if (status.table.empty()) status.table = options.table;
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

std::string_view to_string(SchemaState state) noexcept {
  switch (state) {
    case SchemaState::good: return "good";
    case SchemaState::failed: return "failed";
    case SchemaState::pending: return "pending";
    case SchemaState::drift: return "drift";
    case SchemaState::interrupted: return "interrupted";
    case SchemaState::locked: return "locked";
    case SchemaState::incompatible: return "incompatible";
    case SchemaState::stopped: return "stopped";
  }
  return "failed";
}

Status status(std::string_view url, const Options& options) { return survey(url, options, false); }
Status check(std::string_view url, const Options& options, std::optional<Role> role) {
  return survey(url, options, true, role);
}

Structure dump(std::string_view url, const Options& options) {
  auto migrator = open(url, options, false);
  try {
    return migrator.dump();
  } catch (const Failure& failure) { throw engine::to_error(failure, false); }
}

std::string grants(std::string_view url, Role role, std::string_view name, const Options& options) {
  check_role(name);
  auto migrator = open(url, options, false);
  try {
    return migrator.grants(word_of(role), name);
  } catch (const Failure& failure) { throw engine::to_error(failure, false); }
}

std::string grants_for(std::string_view dialect, Role role, std::string_view name, const Options& options) {
  check_role(name);
  return migrate::grants_of(dialect_named(dialect), migrate::names_of(options), word_of(role), name);
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
  return migrate::script_of(found, migrate::names_of(options), from, to, with_history, DLOCK_VERSION);
}

}  // namespace schema
}  // namespace v0
}  // namespace dlock
