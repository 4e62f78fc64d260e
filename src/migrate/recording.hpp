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
class RecordingStatements : public TriggerStatements {
 public:
  RecordingStatements(const dialects::Dialect& dialect, dialects::TableNames names);

  const dialects::TableNames& names() const noexcept { return names_; }
  // What the names of all parts begin with that are made by these statements, and by no others.
  const std::string& recorder() const noexcept { return recorder_; }

  // Those that make the triggers, in their order.
  std::vector<std::string> triggers() const;
  // Those that make the history where there is none, or take it away, for the database's own client.
  std::string script(bool made) const;

 private:
  const dialects::TableNames names_;
  const std::string recorder_;
};

// Makes the history of one lock table, with what writes it, or takes both away.
// Threads: one at a time. Owns: its connection, opened at the first call. Of the options it heeds the names, what
// bounds time, `dry_run`, `stop` and `observer`.
// Fails: MigrationError if there is no lock table, another table has the history's name, or it is stopped; Failure for
// the rest. Every call may be repeated after any failure.
class LockRecording : private TriggerChange {
 public:
  LockRecording(const dialects::Dialect& dialect, std::unique_ptr<dialects::Connector> connector,
                MigrateOptions options);

  Change make() { return bring(true); }
  Change drop() { return bring(false); }

 private:
  // What is there.
  struct Parts {
    bool table = false, complete = false;
    std::vector<std::string> drops;  // the statements that take the triggers away
    bool any() const noexcept { return table || !drops.empty(); }
  };

  Change bring(bool made);
  void open();
  void check_lock_table();
  void check_history_table();
  // Whether there is nothing left to do. Sets parts_.
  bool settled(bool made);
  // Keeps others out who do the same, where a transaction does not. False: somebody else is at it.
  bool enter();
  void leave() noexcept;
  void replace(bool made);

  std::optional<RecordingStatements> statements_;
  Named table_;
  Parts parts_;
};

}  // namespace dlock::migrate
