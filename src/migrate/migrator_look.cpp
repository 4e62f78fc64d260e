// What the migrator tells about a database that it only looks at.
#include "migrate/migration_lock.hpp"
#include "migrate/migrator.hpp"
#include "migrate/structure.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace dlock::migrate {

Surveyed TableMigrator::survey(bool thorough, std::string_view role) {
  if (role == "migrator")
    throw Error(Fault::misuse,
                "what the role that migrates lacks is known only when it does: up says so; grants tells what it needs");
  open();
  try {
    Surveyed result{connection_->server(), history_->names(), {}, {}, {}, {}};
    const auto& names = result.names;
    result.found = look(true);
    result.assessment = judge(result.found);
    const auto& assessment = result.assessment;
    const auto version = assessment.current;
    if (!role.empty() && result.found.lock)
      if (const auto missing = history_->missing_rights(role, soon()); !missing.empty())
        throw Failure(Cause::permission,
                      fmt::format("this role lacks rights: {}{}", fmt::join(missing, ", "), history_->needed(role)));
    if (assessment.state == SchemaState::unrecorded && !history_->may("select", "history", soon()))
      throw Failure(Cause::permission, fmt::format("there is no history {} that this role may see", names.history));
    if (!thorough || assessment.state != SchemaState::good || version > assessment.latest) return result;
    const Reading reading(*history_);
    result.differences = differences_from(version);
    if (result.differences.empty()) return result;
    const bool mendable = differences_from(version, false).empty();
    result.cure = mendable ? hint_command("repair", table_) + " to make it anew" : "compare with \"dlock-migrate sql\"";
    return result;
  } catch (const Failure& failure) { rethrow_with_right(failure, "read_only"); }
}

Dumped TableMigrator::dump() {
  open();
  try {
    const Reading reading(*history_);
    return {connection_->server(), history_->names(), judge(history_->find(soon())).current,
            history_->structure(soon()), history_->details(soon())};
  } catch (const Failure& failure) { rethrow_with_right(failure, "read_only"); }
}

std::string TableMigrator::grants(std::string_view role, std::string_view name) {
  open();
  auto text = grants_of(dialect_, history_->names(), role, name);
  if (history_->keeps_locks(soon()))
    if (const auto more = history_->grants(fmt::format("history_{}", role), dialect_.grantee(name)); !more.empty())
      text += "\n" + more;
  return text;
}

std::string grants_of(const dialects::Dialect& dialect, const dialects::TableNames& names, std::string_view role,
                      std::string_view name) {
  const auto migrations = migrations_of(dialect);
  ScriptRecorder nobody(dialect);
  auto text = History(nobody, dialect, migrations, names).grants(role, dialect.grantee(name));
  if (text.empty())
    throw Error(
        Fault::misuse,
        fmt::format("{} knows no roles: who may read or write the file may do so with the tables", dialect.name()));
  if (names.schema.empty() && text.find(dialect.quote({})) != std::string::npos)
    throw Error(Fault::misuse, "these statements name the schema: pass --schema, or a URL instead of the dialect");
  return text;
}

bool TableMigrator::lacks_view(int version) {
  return version > 0 && !history_->find(soon()).status && history_->may("see", "status", soon());
}

std::vector<std::string> TableMigrator::differences_from(int version, bool with_mendable) {
  auto expected = version == 0 ? std::vector<std::string>{} : migration(version).structure;
  if (version > 0 && !history_->find(soon()).status && (!with_mendable || !lacks_view(version)))
    std::erase_if(expected, [](const std::string& line) { return line.starts_with("status"); });
  auto found = history_->structure(soon());
  // A table of that name may be another program's.
  const bool ours =
      std::any_of(found.begin(), found.end(), [](const std::string& line) { return line.starts_with("lock.name: "); });
  const bool floor = !ours || history_->has_some_floor(soon());
  if (!floor || !with_mendable) std::erase(expected, identity_line);
  if (!with_mendable) std::erase(found, identity_line);
  auto result = differences(expected, found, history_->names());
  if (result.empty() && version > 0 && !floor && with_mendable)
    result.emplace_back(
        fmt::format("the floor row is missing: \"dlock-migrate repair{}\" makes it again, above every "
                    "fencing token ever handed out",
                    table_.flags));
  return result;
}

}  // namespace dlock::migrate
