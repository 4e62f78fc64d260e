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

// The migrator of one table.
// Threads: one at a time. Owns: its connection, opened at the first call.
// Fails: MigrationError for what a person has to decide or wait for; Failure for the rest; Error{misuse} for a version
// that does not exist. Every call may be repeated after any failure: it goes on where the last one stopped.
class TableMigrator {
 public:
  TableMigrator(const dialects::Dialect& dialect, std::unique_ptr<dialects::Connector> connector,
                schema::Options options);
  ~TableMigrator();

  // Applies what is pending, up to `to` (the latest if empty). Safe for any number of migrators at once.
  schema::Report up(std::optional<int> to = {});

  // Resumes the version that is half done, if there is one; if not, makes anew what is missing of the view for people
  // and of the floor row.
  schema::Report repair();

  // Writes into the history what is there already: versions 1 to `at` where there was no history; one version that
  // was finished by hand; or that one was never begun. Compare the tables first, unless told not to.
  schema::Report baseline(int at);
  schema::Report mark_applied(int version);
  schema::Report discard(int version);

  // Takes back every version above `to`. Refuses while a live lease exists, unless forced.
  schema::Report down(int to, bool force);

  std::string target() const { return connector_->target(); }
  int latest() const noexcept { return static_cast<int>(migrations_.size()); }

  // Reads only. `thorough` compares the structure of the table and looks for the floor row too. `role`: refuses, with
  // Cause::permission, if the role of the connection lacks what a "runtime" or "read_only" one needs.
  schema::Status survey(bool thorough, std::string_view role = {});

  // Reads only.
  schema::Structure dump();

  // As History::grants(), for the schema of the connection; `name` is the role's, unquoted.
  std::string grants(std::string_view role, std::string_view name);

 private:
  std::string grants_on_history(std::string_view role, std::string_view grantee);

  // The next version to be made or taken back.
  struct MigrationStep {
    bool up;
    const Migration* migration;
    const std::vector<Step>& steps() const { return up ? migration->up : migration->down; }
  };

  // What is to be done without walking a step.
  struct Amendment {
    std::string state{};  // of the versions to adopt
    std::vector<int> adopt{};
    std::optional<int> discard{};
    const Step* view = nullptr;  // to be made anew
    bool make_floor = false;     // where it is missing
    bool make_identity = false;  // in the floor row, likewise
    bool nothing() const noexcept {
      return adopt.empty() && !discard && view == nullptr && !make_floor && !make_identity;
    }
  };

  // A call that changes something, as far as it has come.
  struct MigrationProgress {
    Instant deadline;  // of the waiting for others
    schema::Report report{};
    bool begun = false, waiting = false;
  };
  enum class Pass { nothing_to_do, done, in_vain };

  // Looks, and does under the lock of the table what is to be done, if another look under it says so still.
  // `decide(found)`: whether there is anything to do. In vain: another migrator was at work, and was waited for; or had
  // done it.
  Pass pass(MigrationProgress& progress, const std::function<bool(const SchemaSnapshot&, const Assessment&)>& decide,
            const std::function<void(const SchemaSnapshot&)>& carry_out);
  void wait_for_other(MigrationProgress& progress, const std::string& holder);
  MigrationProgress begin() const { return {later(BootClock::now(), options_.timeouts.lock)}; }
  bool other_at_work(const SchemaSnapshot& found) const;

  // `to`: the version that the table is at then.
  schema::Report amend(int to, const std::function<Amendment(const SchemaSnapshot&)>& decide);
  schema::Report restore(int current);
  std::string nothing_half_done(const Assessment& assessment) const;
  void carry_out(const Amendment& amendment, const SchemaSnapshot& found);
  void check_known(int version) const;
  // Unless the tables are those of `version`. `command` is what was asked for; `instead` is what to run if they are
  // those of another version, with {} for it.
  void refuse_different(int version, const std::string& command, std::string_view instead);

  schema::Report run(bool up, int target, bool force);
  std::optional<MigrationStep> next_step(const SchemaSnapshot& found, bool up, int target) const;
  void apply(const MigrationStep& next, const SchemaSnapshot& found, bool force);
  // Of a dry run: what would be found after that.
  void simulate(const MigrationStep& next, SchemaSnapshot found);
  void begin_version(const MigrationStep& next, const SchemaSnapshot& found);
  void run_steps(const MigrationStep& next);
  void refuse_live_leases(const SchemaSnapshot& found);
  // What writes a history of the locks is theirs, and its rows are somebody's.
  void refuse_kept_history();
  void refuse_unless_movable(const Assessment& assessment) const;
  void refuse_missing_schema(const SchemaSnapshot& found) const;
  [[noreturn]] void refuse_locked(const std::string& holder) const;
  // By another migrator, which thought this one dead; `when`: " before …".
  [[noreturn]] static void refuse_taken_over(int version, const std::string& when = {});
  // Writes a failed next down where it leaves something behind.
  void record(const MigrationStep& next, const Failure& failure);
  // Records, and says what a person has to know.
  [[noreturn]] void give_up(const MigrationStep& next, const Failure& failure, unsigned tries);
  [[noreturn]] void rethrow_with_right(const Failure& failure, std::string_view role) const;

  schema::Status surveyed(bool thorough, std::string_view role);
  // The versions that are in no history yet.
  void add_pending(schema::Status& status) const;
  void add_lack_of_recorder(schema::Status& status);
  void open();
  // Where there is not even a database, the first write would make it.
  void open_for_dry_run();
  // What is there, as far as it is told before the call is cut off. Catalog and history are read one after the other,
  // and another migrator may be at work between them: what would be refused is looked at again. `in_transaction`: one
  // that only reads, around each look.
  SchemaSnapshot look(bool in_transaction = false);
  // A refusal or a stop; also where a statement failed because it was cut off as asked.
  std::optional<MigrationError> as_refusal(const Failure& failure) const;
  // What makes the tables differ from those of a version, one sentence each. A view that this role may not see does
  // not; nor, if that is not asked for, does what repair() makes anew.
  std::vector<std::string> differences_from(int version, bool with_mendable = true);
  // A version has a view, and it is not there. False where this role could not see it.
  bool lacks_view(int version);
  Assessment judge(const SchemaSnapshot& found) const;
  const Migration& migration(int version) const { return migrations_.at(static_cast<std::size_t>(version - 1)); }
  bool own(const HistoryRow& row) const { return row.owner == who_.owner; }
  void stop_point() const;
  void tell(const std::string& text) const;
  // Above the next statement of a dry run.
  void note(const std::string& text) const;
  bool transactional() const { return history_->has("begin"); }
  Deadline of_step() const;

  const dialects::Dialect& dialect_;
  const std::unique_ptr<dialects::Connector> connector_;
  const schema::Options options_;
  const dialects::TableNames names_;  // as in the options
  const std::vector<Migration> migrations_;
  const Migrator who_;
  std::unique_ptr<dialects::Connection> connection_;
  std::unique_ptr<dialects::Canceller> canceller_;  // of the connection; none where nothing is ever cut off
  std::unique_ptr<ScriptRecorder> recorder_;        // of a dry run
  std::optional<SchemaSnapshot> simulated_;         // of a dry run: what the database is taken to be by now
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
