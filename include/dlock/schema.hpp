// How the lock table is made, upgraded, taken back and looked at: what dlock-migrate does, as calls.
#pragma once

#include <dlock/credentials.hpp>
#include <dlock/duration.hpp>
#include <dlock/export.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace dlock {
inline namespace v0 {
namespace schema {

// Which table, and how patient to be with it.
struct Options {
  std::string schema{};                 // of the table; empty: the connection's default
  std::string table = "resource_lock";  // [A-Za-z_][A-Za-z0-9_]{0,47}
  std::string history_table{};          // empty: <table>_schema_history
  std::string application = "dlock-migrate";
  struct Timeouts {
    // Longer where a server wakes up first.
    SaturatingDuration connect = std::chrono::seconds{10};
    // Wait for another migrator. 0 where a busy one is an answer.
    SaturatingDuration lock = std::chrono::seconds{60};
    // Wait for readers and writers of the table, per try. Shorter where the application must not queue behind that.
    SaturatingDuration ddl_lock = std::chrono::seconds{3};
    // Of one statement; 0: none. For a table that must not be locked for long.
    SaturatingDuration statement{};
  };
  Timeouts timeouts{};
  unsigned ddl_retries = 10;                   // further tries after ddl_lock, with jitter between them
  std::function<Credentials()> credentials{};  // see EngineOptions::credentials
  bool create_schema = false;                  // make a missing schema instead of refusing
  bool lock = true;                            // false: only the history's rows keep two migrators apart
  bool verify = true;                          // of baseline(), mark_applied(), discard(): compare the tables first
  bool dry_run = false;                        // change nothing: Report::plan tells what would be run
  std::stop_token stop{};                      // finish or roll back the step under way, then leave
  std::stop_token cancel{};                    // the same, and have the database cut off the statement under way
  std::function<void(std::string_view)> observer{};  // one sentence about each thing done
};

// What a call has found or left, as far as a caller can act on it.
enum class SchemaState {
  good,          // done, or nothing to do, or nothing found wrong
  failed,        // a statement of a migration failed; the message says which, and why
  pending,       // there are versions to be applied
  drift,         // the table, its history and this library contradict each other
  interrupted,   // a version was begun and not finished; up() resumes it
  locked,        // another migrator is at work, or the table's locks were not obtained
  incompatible,  // made by a newer dlock that says this one cannot work with it
  stopped,       // Options::stop or Options::cancel was
};

// The state's name, as in the enumeration.
DLOCK_EXPORT std::string_view to_string(SchemaState state) noexcept;

// What was done.
struct Report {
  SchemaState state{};
  std::string message{}, hint{};  // one sentence each; the hint may be empty
  std::string code{};             // the database's own, of a failed statement
  int from = 0, to = 0;           // versions before and after, where the state is good
  std::vector<int> versions{};    // made, taken back, adopted, …, in order
  std::string plan{};             // of a dry run: the statements, as a script with comments
  std::vector<std::string>
      restored{};  // of repair(): what was missing, and has been made anew: "view …", "floor row of …"
};

// One version of the table, as the history or this library knows it.
struct Version {
  using Time = std::chrono::sys_time<Duration>;
  int number = 0;
  std::string name{};
  std::string state{};  // pending, running, applied, failed, baseline
  bool known = false;   // to this library
  std::string checksum{}, min_client{};
  int steps_done = 0, steps_total = 0;
  std::optional<Time> started{}, finished{};  // by the database's clock
  std::string tool_version{}, applied_by{}, error{};
};

// What is in the database.
struct Status {
  SchemaState state{};
  std::string message{}, hint{};
  std::string target{}, server{};  // where: the URL without its password, the product and its version
  std::string schema{}, table{};
  int current = 0;  // version of the table; 0: there is none
  int latest = 0;   // version that this library makes
  bool table_exists = false, history_exists = false;
  std::vector<Version> versions{};
  std::vector<std::string> differences{};  // of check(): where the table is not what it should be
};

// What the tables and the view of a database are.
struct Structure {
  std::string target{}, server{};  // as in Status
  std::string schema{}, table{};
  int version = 0;                     // as the history says; 0: none
  std::vector<std::string> lines{};    // "lock.token: bigint, not null", …; what check() compares: the same for the
                                       // same tables, whatever they are called and in whatever order they were made
  std::vector<std::string> details{};  // all that the server says of them, in its own words
};

// What a role is for.
enum class Role {
  migrator,   // up() and the rest that writes
  runtime,    // engines
  read_only,  // status(), check(), plan(), dump(), dashboards
};

DLOCK_EXPORT std::string_view to_string(Role role) noexcept;

// All of these connect, work and disconnect. Threads: any. Arguments: where, then what the call cannot do without, then
// the options, then what may be left out.
// Fail: Error{unavailable, timeout, permission, misuse}; everything else is a SchemaState.

// Applies what is pending, up to version `to` (empty: the latest). Any number of callers may do so at once.
[[nodiscard]] DLOCK_EXPORT Report up(std::string_view url, const Options& options = {}, std::optional<int> to = {});

// What up() would run now, statement by statement, in Report::plan. Writes nothing, takes no lock; needs only SELECT.
[[nodiscard]] DLOCK_EXPORT Report plan(std::string_view url, const Options& options = {}, std::optional<int> to = {});

// Takes back every version above `to`. Refuses while a live lease exists, unless forced. Version 0 is the empty
// database: all fencing tokens are forgotten with it.
[[nodiscard]] DLOCK_EXPORT Report down(std::string_view url, int to, const Options& options = {}, bool force = false);

// Writes versions 1 to `at` into the history of a table that has none, because it was made by other means.
[[nodiscard]] DLOCK_EXPORT Report baseline(std::string_view url, int at, const Options& options = {});

// Looks again at the version that is half done, if there is one, and finishes it, as up() would do. If there is none, a
// view that is missing is made anew; tables that are not what they should be are SchemaState::drift, and stay as they
// are.
[[nodiscard]] DLOCK_EXPORT Report repair(std::string_view url, const Options& options = {});

// Writes into the history that this version is applied, as it was finished by hand; or was never begun, as what it
// had done was taken back by hand.
[[nodiscard]] DLOCK_EXPORT Report mark_applied(std::string_view url, int version, const Options& options = {});
[[nodiscard]] DLOCK_EXPORT Report discard(std::string_view url, int version, const Options& options = {});

// Reads the history. Writes nothing, takes no lock.
[[nodiscard]] DLOCK_EXPORT Status status(std::string_view url, const Options& options = {});

// As status(), and compares the structure of the table with what it should be. Needs only SELECT. A view that the role
// of the connection may not see is taken to be there. `role`: fails with Error{permission}, which names the rights, if
// that role lacks one that `runtime` or `read_only` needs; with Error{misuse} for `migrator`, whose rights show at
// work.
[[nodiscard]] DLOCK_EXPORT Status check(std::string_view url, const Options& options = {},
                                        std::optional<Role> role = {});

// What is there, for reports and comparisons. Writes nothing; needs only SELECT.
[[nodiscard]] DLOCK_EXPORT Structure dump(std::string_view url, const Options& options = {});

// The least GRANT statements that let the role `name` do what it is for; to be run by an administrator, for `runtime`
// and `read_only` after up(), and again after an upgrade. Fails: also Error{misuse} where the database knows no roles.
[[nodiscard]] DLOCK_EXPORT std::string grants(std::string_view url, Role role, std::string_view name,
                                              const Options& options = {});

// The same for a database of dialects(), without a connection; Options::schema may be needed.
[[nodiscard]] DLOCK_EXPORT std::string grants_for(std::string_view dialect, Role role, std::string_view name,
                                                  const Options& options = {});

// The databases this library was built with.
[[nodiscard]] DLOCK_EXPORT std::vector<std::string> dialects();

// The newest version of the table on a database of dialects(). Fails: Error{misuse}.
[[nodiscard]] DLOCK_EXPORT int latest(std::string_view dialect);

// The statements from version `from` to version `to` (downwards if it is smaller), without a connection.
// Fails: Error{misuse}.
[[nodiscard]] DLOCK_EXPORT std::string sql(std::string_view dialect, int from, int to, const Options& options = {},
                                           bool with_history = true);

}  // namespace schema
}  // namespace v0
}  // namespace dlock
