// How an engine finds out, at open, whether it can work with the table it was pointed at.
#include "migrate/compatibility.hpp"

#include "migrate/assessment.hpp"
#include "migrate/history.hpp"
#include "migrate/migrations.hpp"

#include <dlock/version.hpp>

#include <fmt/format.h>

#include <string_view>

namespace dlock::migrate {
namespace {

[[noreturn]] void refuse(const std::string& message, const std::string& hint) {
  throw Failure(Cause::schema, message + "; " + hint);
}

// The right that reading needs, added to a refusal that does not name it.
[[noreturn]] void rethrow_with_right(const Failure& failure, const History& history) {
  const bool told = std::string_view(failure.what()).find("GRANT") != std::string_view::npos;
  if (failure.cause() != Cause::permission || told) throw;
  throw Failure(Cause::permission, failure.what() + history.needed("runtime"), failure.code());
}

}  // namespace

void check_compatible(dialects::Connection& connection, const dialects::Dialect& dialect,
                      const dialects::TableNames& names, Deadline deadline) {
  const auto migrations = migrations_of(dialect);
  History history(connection, dialect, migrations, names);
  try {
    const auto table = named(names, connection.default_schema(deadline));
    const auto found = history.find(deadline);
    const auto assessment = assess(found, migrations, DLOCK_VERSION, table);
    const auto up = hint_command("up", table);
    switch (assessment.state) {
      case SchemaState::good:
      case SchemaState::unrecorded: break;
      case SchemaState::at_work:
        // A table this library already knows stays usable while a newer version is being made.
        if (assessment.current >= assessment.latest) break;
        refuse(assessment.message, "try again when it is done, or " + up);
      case SchemaState::interrupted:
        if (assessment.current >= assessment.latest) break;
        refuse(assessment.message, assessment.hint);
      case SchemaState::pending:
        if (!found.lock) break;  // some catalogs show only what the role may read: ask the table itself
        refuse(assessment.message, assessment.hint);
      case SchemaState::drift:
        if (!found.lock) refuse(assessment.message, assessment.hint);
        refuse(assessment.message, hint_command("check", table));
      case SchemaState::incompatible: refuse(assessment.message, assessment.hint);
    }
    bool floor = false;
    try {
      floor = history.has_floor(deadline);
    } catch (const Failure& failure) {
      if (failure.cause() != Cause::schema) throw;
      if (!found.lock) refuse(fmt::format("the table {} does not exist", shown(names)), up);
      refuse(fmt::format("the table {} is not the one dlock {} works with: {}", shown(names), DLOCK_VERSION,
                         failure.what()),
             hint_command("check", table));
    }
    if (!floor)
      refuse(fmt::format("the floor row of the table {} is missing", shown(names)), hint_command("repair", table));
    if (!history.has_identity(deadline))
      refuse(fmt::format("the floor row of the table {} does not say which installation it is", shown(names)),
             hint_command("repair", table));
  } catch (const Failure& failure) { rethrow_with_right(failure, history); }
}

}  // namespace dlock::migrate
