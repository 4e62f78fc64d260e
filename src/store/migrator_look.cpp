// This file knows what the migrator tells about a database that it only looks at.
#include "store/migrator.hpp"
#include "store/migrator_round.hpp"
#include "store/structure.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

namespace dlock::store {

Surveyed TableMigrator::survey(bool thorough) {
  open();
  try {
    const Reading reading(*history_);
    Surveyed result{connection_->server(), history_->names(), history_->find(soon()), {}, {}};
    result.assessment = judge(result.found);
    if (thorough && result.assessment.standing == Standing::good && result.assessment.current <= result.assessment.latest)
      result.differences = differences_from(result.assessment.current);
    return result;
  } catch (const Failure& failure) {
    rethrow_with_right(failure, "read_only");
  }
}

Dumped TableMigrator::dump() {
  open();
  try {
    const Reading reading(*history_);
    return {connection_->server(), history_->names(), judge(history_->find(soon())).current, history_->structure(soon()),
            history_->details(soon())};
  } catch (const Failure& failure) {
    rethrow_with_right(failure, "read_only");
  }
}

std::string TableMigrator::grants(std::string_view role, std::string_view name) {
  open();
  return grants_of(dialect_, history_->names(), role, name);
}

std::string grants_of(const dialects::Dialect& dialect, const dialects::TableNames& names, std::string_view role,
                      std::string_view name) {
  const auto road = road_of(dialect);
  Recorder nobody(dialect);
  auto text = History(nobody, dialect, road, names).grants(role, dialect.grantee(name));
  if (text.empty())
    throw Error(Fault::misuse, fmt::format("{} knows no roles: who may read or write the file may do so with the tables",
                                           dialect.name()));
  if (names.schema.empty() && text.find(dialect.quote({})) != std::string::npos)
    throw Error(Fault::misuse, "these statements name the schema: pass --schema, or a URL instead of the dialect");
  return text;
}

std::vector<std::string> TableMigrator::differences_from(int version) {
  const std::vector<std::string> nothing;
  const auto& expected = version == 0 ? nothing : road_.at(static_cast<std::size_t>(version - 1)).structure;
  auto result = differences(expected, history_->structure(soon()), history_->names());
  if (result.empty() && version > 0 && !history_->has_some_floor(soon()))
    result.emplace_back("the floor row is missing: insert it with the empty name and a token at least as large as every "
                        "fencing token ever handed out");
  return result;
}

}  // namespace dlock::store
