// This file knows how a migration is rehearsed: the same walk, with every statement written down instead of sent.
#include "store/migrator.hpp"
#include "store/migrator_round.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace dlock::store {
namespace {

// What would be found after the walk.
void imagine_up(Found& found, const Leg& leg) {
  found.schema = found.lock = found.history = true;
  auto at = std::find_if(found.rows.begin(), found.rows.end(), [&](const HistoryRow& row) { return row.version >= leg.version; });
  if (at == found.rows.end() || at->version != leg.version) at = found.rows.insert(at, HistoryRow{});
  at->version = leg.version;
  at->name = leg.name;
  at->checksum = leg.checksum;
  at->state = "applied";
  at->steps_done = at->steps_total = static_cast<int>(leg.up.size());
  at->min_client = leg.min_client;
}

void imagine_down(Found& found) {
  found.rows.pop_back();
  found.lock = found.history = !found.rows.empty();
}

}  // namespace

// False: there is not even a database, and the first write would make it.
bool TableMigrator::open_to_rehearse() {
  try {
    open();
    return true;
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::schema) throw;
    recorder_ = std::make_unique<Recorder>(dialect_);
    history_ = std::make_unique<History>(*recorder_, dialect_, road_, options_.names);
    if (history_->has("create_schema")) throw;  // a database is made by a person where it can hold several schemas
    return false;
  }
}

Migrated TableMigrator::rehearse(bool up, int target, bool force) {
  const bool there = open_to_rehearse();
  try {
    Found found;
    found.schema = true;
    if (there) found = look(true);
    std::optional<Reading> reading;
    if (there) reading.emplace(*history_);
    auto assessment = judge(found);
    refuse_unless_movable(assessment);
    Migrated result;
    result.from = assessment.current;
    for (auto walk = next_walk(found, up, target); walk; walk = next_walk(found, up, target)) {
      if (assessment.standing == Standing::at_work)
        throw Obstacle(Obstacle::Kind::locked, assessment.message, assessment.hint);
      refuse_missing_schema(found);
      recorder_->comment(fmt::format("{}version {}: {}", up ? "" : "taking back ", walk->leg->version, walk->leg->name));
      Round round(*history_, options_.lock, [](const std::string&) {});
      round.enter(options_.ddl_lock_timeout, options_.statement_timeout);
      apply(*walk, found, force);
      round.commit();
      result.done.push_back(*walk->leg);
      if (up) imagine_up(found, *walk->leg);
      else imagine_down(found);
      assessment = judge(found);
    }
    result.to = assessment.current;
    result.message = assessment.message;
    result.plan = recorder_->text();
    return result;
  } catch (const Failure& failure) {
    rethrow_with_right(failure, "read_only");
  }
}

}  // namespace dlock::store
