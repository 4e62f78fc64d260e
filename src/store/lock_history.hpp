// Reads the history of the locks, and whether there is one. Its rows are written by triggers of the database.
#pragma once

#include "dialects/dialect.hpp"
#include "migrate/assessment.hpp"
#include "types/clock.hpp"
#include "types/row.hpp"

#include <dlock/holder.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace dlock::store {

// Threads: any. Fails: Failure; with Cause::schema, and the command that makes it, where there is no history.
class LockHistory {
 public:
  // Runs `work` on a connection.
  using OnConnection =
      std::function<void(const Deadline&, const std::function<void(dialects::Connection&, const Deadline&)>&)>;

  LockHistory(const dialects::Statements& all, migrate::Named table, OnConnection on_connection);

  // Whether it is there, with all that writes it.
  bool kept(Deadline deadline) const;
  // Throws unless it is.
  void check(Deadline deadline) const;
  // The newest grants of a name first.
  std::vector<HistoryEntry> of(std::string_view name, std::size_t limit, Deadline deadline) const;

 private:
  using Read = std::function<void(const Answer&)>;
  // What reads many rows takes its time.
  void ask(const dialects::Statement& statement, std::span<const Argument> arguments, Deadline deadline,
           const Read& read) const;

  const dialects::Statement &kept_, &of_;
  const migrate::Named table_;
  const OnConnection on_connection_;
};

}  // namespace dlock::store
