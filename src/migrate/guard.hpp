// Keeps writes with an old fencing token out of a table that is not dlock's, by a trigger on it.
#pragma once

#include "dialects/dialect.hpp"
#include "migrate/trigger_change.hpp"

#include <dlock/guard.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace dlock::migrate {

using schema::GuardedColumn;

// The statements on the guard of one column.
// Threads: any. Fails: Error{misuse} for names that cannot be those of a table and a column.
class GuardStatements : public TriggerStatements {
 public:
  GuardStatements(const dialects::Dialect& dialect, GuardedColumn column);

  const GuardedColumn& column() const noexcept { return column_; }
  // What it is called in the database: the same for the same table and column, and short enough everywhere.
  const std::string& name() const noexcept { return name_; }
  // "orders.last_fence", for people.
  std::string shown() const { return column_.table + "." + column_.column; }

  // The statements that make the guard, as they are sent.
  const std::string& make() const noexcept { return make_; }
  // Those that make it where there may be one already, or take it away, for the database's own client.
  std::string script(bool made) const;

 private:
  const GuardedColumn column_;
  const std::string name_;
  const std::string make_;
};

// Makes the guard of one column, or takes it away.
// Threads: one at a time. Owns: its connection, opened at the first call. Of the options it heeds what bounds time,
// `dry_run`, `stop` and `observer`.
// Fails: Error{misuse} if the table or the column is not there, or cannot have a guard; MigrationError when it is
// stopped; Failure for the rest. Every call may be repeated after any failure.
class TableGuard : private TriggerChange {
 public:
  TableGuard(const dialects::Dialect& dialect, std::unique_ptr<dialects::Connector> connector, GuardedColumn column,
             MigrateOptions options);

  Change make() { return bring(true); }
  Change drop() { return bring(false); }

 private:
  enum class State { absent, as_made, different };

  Change bring(bool made);
  void open();
  // Throws Error{misuse}. A guard may be left over from a column that is gone.
  void check_table(bool with_column);
  // Whether there is nothing left to do. Sets state_.
  bool settled(bool made);
  void replace(bool made);
  // What is said of a guard that was to be replaced; `looked`: state_ is that behind the failure.
  std::string gap(bool looked) const;

  GuardedColumn column_;
  std::optional<GuardStatements> statements_;
  State state_ = State::absent;
};

}  // namespace dlock::migrate
