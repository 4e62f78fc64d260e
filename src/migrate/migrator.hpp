// How the lock table is brought from one version to another.
#pragma once

#include "dialects/dialect.hpp"
#include "migrate/assessment.hpp"
#include "migrate/history.hpp"
#include "migrate/script_recorder.hpp"
#include "types/clock.hpp"

#include <dlock/duration.hpp>
#include <dlock/schema.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::migrate {

// What a caller says, and what is made of it.
struct MigrateOptions : schema::Options {
  dialects::TableNames names{};              // checked; an empty schema is the connection's default
  std::string tool_version{}, applied_by{};  // for the history
};

// What a migration did. An empty `done`: nothing had to be done.
struct Migrated {
  int from = 0, to = 0;
  std::vector<Migration> done;  // in the order they were walked
  std::string plan;             // of a dry run: the statements, with what they are for as comments
  std::string message;
  std::vector<std::string> restored;  // what was missing: "view …", "floor row of …"
};

// What is in the database, and what that means.
struct Surveyed {
  std::string server;
  dialects::TableNames names;
  SchemaSnapshot found;
  Assessment assessment;
  std::vector<std::string> differences;  // only of a thorough survey
  std::string cure;                      // of the differences: what to do
};

// What the tables and the view are.
struct Dumped {
  std::string server;
  dialects::TableNames names;
  int version = 0;                              // as the history says
  std::vector<std::string> structure, details;  // as in History
};

// The migrator of one table.
// Threads: one at a time. Owns: its connection, opened at the first call.
// Fails: MigrationError for what a person has to decide or wait for; Failure for the rest; Error{misuse} for a version
// that does not exist. Every call may be repeated after any failure: it goes on where the last one stopped.
class TableMigrator {
 public:
  TableMigrator(const dialects::Dialect& dialect, std::unique_ptr<dialects::Connector> connector,
                MigrateOptions options);
  ~TableMigrator();

  // Applies what is pending, up to `to` (the latest if empty). Safe for any number of migrators at once.
  Migrated up(std::optional<int> to = {});

  // Resumes the version that is half done, if there is one; if not, makes anew what is missing of the view for people
  // and of the floor row.
  Migrated repair();

  // Writes into the history what is there already: versions 1 to `at` where there was no history; one version that
  // was finished by hand; or that one was never begun. Compare the tables first, unless told not to.
  Migrated baseline(int at);
  Migrated mark_applied(int version);
  Migrated discard(int version);

  // Takes back every version above `to`. Refuses while a live lease exists, unless forced.
  Migrated down(int to, bool force);

  const std::vector<Migration>& migrations() const noexcept { return migrations_; }

  // Reads only. `thorough` compares the structure of the table and looks for the floor row too. `role`: refuses, with
  // Cause::permission, if the role of the connection lacks what a "runtime" or "read_only" one needs.
  Surveyed survey(bool thorough, std::string_view role = {});

  // Reads only.
  Dumped dump();

  // As History::grants(), for the schema of the connection; `name` is the role's, unquoted.
  std::string grants(std::string_view role, std::string_view name);

 private:
  // The next version to be made or taken back.
  struct MigrationStep {
    bool up;
    const Migration* migration;
    const std::vector<Step>& steps() const { return up ? migration->up : migration->down; }
  };

  // What is to be done without walking a step.
  struct Amendment {
    std::string state;  // of the versions to adopt
    std::vector<int> adopt;
    std::optional<int> discard;
    bool drop_history = false;
    const Step* view = nullptr;  // to be made anew
    bool make_floor = false;     // where it is missing
    bool make_identity = false;  // in the floor row, likewise
    bool nothing() const noexcept {
      return adopt.empty() && !discard && view == nullptr && !make_floor && !make_identity;
    }
  };

  // `decide` is asked before the lock is taken, and again under it. `to`: the version that the table is at then.
  Migrated amend(int to, const std::function<Amendment(const SchemaSnapshot&)>& decide);
  Migrated restore(int current);
  std::string nothing_half_done(const Assessment& assessment) const;
  void carry_out(const Amendment& amendment, const SchemaSnapshot& found);
  void check_known(int version) const;
  // Unless the tables are those of `version`. `command` is what was asked for; `instead` is what to run if they are
  // those of another version, with {} for it.
  void refuse_different(int version, const std::string& command, std::string_view instead);

  Migrated run(bool up, int target, bool force);
  Migrated dry_run(bool up, int target, bool force);
  bool open_for_dry_run();
  std::optional<MigrationStep> next_step(const SchemaSnapshot& found, bool up, int target) const;
  void apply(const MigrationStep& next, const SchemaSnapshot& found, bool force);
  void begin_version(const MigrationStep& next, const SchemaSnapshot& found);
  void run_steps(const MigrationStep& next);
  void refuse_live_leases(const SchemaSnapshot& found);
  // What writes a history of the locks is theirs, and its rows are somebody's.
  void refuse_kept_history();
  void refuse_unless_movable(const Assessment& assessment) const;
  void refuse_missing_schema(const SchemaSnapshot& found) const;
  [[noreturn]] void refuse_locked(const std::string& holder) const;
  // Writes a failed next down where it leaves something behind.
  void record(const MigrationStep& next, const Failure& failure);
  // Records, and says what a person has to know.
  [[noreturn]] void give_up(const MigrationStep& next, const Failure& failure, unsigned tries);
  [[noreturn]] void rethrow_with_right(const Failure& failure, std::string_view role) const;

  void open();
  // What is there, as far as it is told before the call is cut off. Catalog and history are read one after the other,
  // and another migrator may be at work between them: what would be refused is looked at again. `in_transaction`: one
  // that only reads, around each look.
  SchemaSnapshot look(bool in_transaction = false);
  // Whether that is why a statement failed.
  bool cut_off(const Failure& failure) const;
  // What makes the tables differ from those of a version, one sentence each. A view that this role may not see does
  // not; nor, if that is not asked for, does what repair() makes anew.
  std::vector<std::string> differences_from(int version, bool with_mendable = true);
  // A version has a view, and it is not there. False where this role could not see it.
  bool lacks_view(int version);
  Assessment judge(const SchemaSnapshot& found) const;
  const Migration& migration(int version) const { return migrations_.at(static_cast<std::size_t>(version - 1)); }
  bool own(const HistoryRow& row) const { return row.owner == who_.owner; }
  void stop_point() const;
  void pause(Duration longest) const;
  void tell(const std::string& text) const;
  // Above the next statement of a dry run.
  void note(const std::string& text) const;
  bool transactional() const { return history_->has("begin"); }
  Deadline of_step() const;

  const dialects::Dialect& dialect_;
  const std::unique_ptr<dialects::Connector> connector_;
  MigrateOptions options_;
  const std::vector<Migration> migrations_;
  const Migrator who_;
  std::unique_ptr<dialects::Connection> connection_;
  std::unique_ptr<dialects::Canceller> canceller_;  // of the connection; none where nothing is ever cut off
  std::unique_ptr<ScriptRecorder> recorder_;        // of a dry run
  bool simulated_ = false;                          // in a dry run: the database is not any more what it is taken to be
  std::unique_ptr<History> history_;
  std::string server_;
  Named table_;
  std::optional<std::size_t> step_;  // of the next under way; empty: before the first; their number: after the last
};

// The statements that would take an empty database, or one at version `from`, to version `to`; for people. No
// connection. Names without a schema stay unqualified.
std::string script_of(const dialects::Dialect& dialect, const dialects::TableNames& names, int from, int to,
                      bool with_history, std::string_view tool_version);

// The same without a connection. Throws Error{misuse} where the statements name a schema, and none is given.
std::string grants_of(const dialects::Dialect& dialect, const dialects::TableNames& names, std::string_view role,
                      std::string_view name);

}  // namespace dlock::migrate
