// Has a database write a row of history for each grant of a lock table that ends, by triggers on its tables.
#pragma once

#include "dialects/dialect.hpp"
#include "migrate/assessment.hpp"
#include "migrate/trigger_change.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::migrate {

// The statements on the history of one lock table.
// Threads: any. Fails: Error{misuse} where they need the name of a schema that is not known.
class RecordingStatements final : public TriggerStatements {
 public:
  RecordingStatements(const dialects::Dialect& dialect, dialects::TableNames names);

  const dialects::TableNames& names() const noexcept { return names_; }
  // What the names of all parts begin with that are made by these statements, and by no others.
  const std::string& recorder() const noexcept { return recorder_; }

  // Those that make the triggers, in their order.
  std::vector<std::string> triggers() const;
  std::string script(bool made) const override;

 private:
  const dialects::TableNames names_;
  const std::string recorder_;
};

// What there is of a history.
struct RecordingParts {
  bool table = false, complete = false;
  bool others = false;             // some of it was made by other statements, such as another dlock's
  std::vector<std::string> drops;  // the statements that take the triggers away
  bool any() const noexcept { return table || !drops.empty(); }
};
// Fails: Failure.
RecordingParts recording_parts(dialects::Connection& connection, const RecordingStatements& statements);

// Whether there is a table of history into which the end of a grant writes nothing, or not everything. False where this
// role may not see that.
bool lacks_recorder(dialects::Connection& connection, const RecordingStatements& statements);

// Makes the history of one lock table, with what writes it, or takes both away. Of the options it heeds the names, too.
// Fails: also MigrationError if there is no lock table, or another table has the history's name.
class LockRecording final : public TriggerChange {
 public:
  using TriggerChange::TriggerChange;

 private:
  // Keeps others out who do the same, where a transaction does not. Throws MigrationError if somebody else is at it.
  class Turn;

  const TriggerStatements& statements() const override { return *statements_; }
  void open() override;
  void check(bool made) override;
  void check_history_table();
  bool settled(bool made) override;  // sets parts_
  bool replace(bool made) override;
  std::string told(bool made, bool changed) const override;

  std::optional<RecordingStatements> statements_;
  Named table_;
  RecordingParts parts_;
};

}  // namespace dlock::migrate
