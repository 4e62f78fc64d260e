// The statements about rows of the lock table, by the names that every dialect gives them.
#pragma once

#include "dialects/statement.hpp"

namespace dlock::store {

// Looked up once; what they are looked up in must outlive it.
struct LockStatements {
  explicit LockStatements(const dialects::Statements& all)
      : withdraw(all.at("withdraw", {"name", "owner"})),
        renew(all.at("renew", {"name", "owner", "token", "lease"})),
        extend(all.at("extend", {"name", "owner", "token", "lease", "at_least"})),
        update_metadata(all.at("update_metadata", {"name", "owner", "token", "meta", "keep"})),
        adopt(all.at("adopt", {"name", "owner", "token", "new_owner", "node", "label", "actor", "lease", "meta"})),
        force_release(all.at("force_release", {"name", "token", "reason"})),
        busy(all.at("busy", {"name"})),
        lingering(all.at("lingering", {})),
        tell_lingering(all.at("tell_lingering", {})),
        look(all.at("look", {"name", "ticket"})),
        inspect(all.at("inspect", {"name"})),
        list(all.at("list", {"prefix"})),
        floor(all.at("floor", {})),
        row_availability(all.at("row_availability", {"name"})),
        make(all.at("make", {"name"})) {}
  const dialects::Statement &withdraw, &renew, &extend, &update_metadata, &adopt, &force_release, &busy, &lingering,
      &tell_lingering, &look, &inspect, &list, &floor, &row_availability, &make;
};

}  // namespace dlock::store
