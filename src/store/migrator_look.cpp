// This file knows what the migrator tells about a database that it only looks at.
#include "store/migrator.hpp"
#include "store/migrator_round.hpp"
#include "store/structure.hpp"

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
    rethrow_with_right(failure, "needed_to_read");
  }
}

Dumped TableMigrator::dump() {
  open();
  try {
    const Reading reading(*history_);
    return {connection_->server(), history_->names(), judge(history_->find(soon())).current, history_->structure(soon()),
            history_->details(soon())};
  } catch (const Failure& failure) {
    rethrow_with_right(failure, "needed_to_read");
  }
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
