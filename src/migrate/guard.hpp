// Keeps writes with an old fencing token out of a table that is not dlock's, by a trigger on it.
#pragma once

#include "dialects/dialect.hpp"
#include "migrate/history.hpp"
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
class GuardStatements final : public TriggerStatements {
 public:
  GuardStatements(const dialects::Dialect& dialect, GuardedColumn column);

  const GuardedColumn& column() const noexcept { return column_; }
  // What it is called in the database: the same for the same table and column, and short enough everywhere.
  const std::string& name() const noexcept { return name_; }
  // "orders.last_fence", for people.
  std::string shown() const { return column_.table + "." + column_.column; }

  // The statements that make the guard, as they are sent.
  const std::string& make() const noexcept { return make_; }
  std::string script(bool made) const override;

 private:
  const GuardedColumn column_;
  const std::string name_;
  const std::string make_;
};

// Makes the guard of one column, or takes it away.
// Fails: also Error{misuse} if the table or the column is not there, or cannot have a guard.
class TableGuard final : public TriggerChange {
 public:
  TableGuard(const dialects::Dialect& dialect, std::unique_ptr<dialects::Connector> connector, GuardedColumn column,
             schema::Options options);

 private:
  enum class State { absent, as_made, different };

  const TriggerStatements& statements() const override { return *statements_; }
  void open() override;
  // A guard may be left over from a column that is gone.
  void check(bool made) override;
  bool settled(bool made) override;  // sets state_
  bool replace(bool made) override;
  std::string told(bool made, bool changed) const override;
  std::string gap(bool looked) const override;

  GuardedColumn column_;
  std::optional<GuardStatements> statements_;
  State state_ = State::absent;
  bool replacing_ = false;  // there was another one
};

}  // namespace dlock::migrate
