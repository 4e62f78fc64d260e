// The history of the lock table: which versions were applied, when, by whom, and which are half done.
#pragma once

#include "dialects/dialect.hpp"
#include "dialects/statement.hpp"
#include "migrate/migrations.hpp"
#include "types/clock.hpp"

#include <dlock/duration.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::migrate {

inline constexpr std::int64_t history_format = 1;  // the columns of format 1 stay in every later one

struct HistoryRow {
  int version = 0;
  std::string name, checksum, state;
  int steps_done = 0, steps_total = 0;
  std::string min_client;
  std::int64_t started_at = 0;
  std::optional<std::int64_t> finished_at;  // µs since the epoch, by the database's clock
  std::string tool_version, applied_by, error, owner;
  Duration lease_left{};
  std::int64_t format = history_format;

  bool done() const noexcept { return state == "applied" || state == "baseline"; }
  bool running() const noexcept { return state == "running"; }
  bool at_work() const noexcept { return running() && lease_left > Duration{}; }
};

// What is in the database, as it was read.
struct SchemaSnapshot {
  bool schema = false, lock = false, status = false, history = false;
  std::vector<HistoryRow> rows;
  // The row of a version, or nullptr.
  const HistoryRow* row(int version) const noexcept;
};

// Who works on a version, as written into its row.
struct Migrator {
  std::string tool_version, applied_by, owner;
};

// The statements of a dialect's migrator on one connection.
// Threads: one at a time. Fails: Failure.
class History {
 public:
  // `writes`: where everything goes that is not a question; the same connection if there is none.
  History(dialects::Connection& connection, const dialects::Dialect& dialect, const std::vector<Migration>& migrations,
          dialects::TableNames names, dialects::Connection* writes = nullptr);

  // Looks into the catalog, and reads the history only if it is there. Creates nothing.
  SchemaSnapshot find(Deadline deadline);

  // The floor row is there. Reads every column of all tables of today, so that a missing one is a Failure{schema}.
  bool has_floor(Deadline deadline);
  // Likewise, of any version.
  bool has_some_floor(Deadline deadline);
  // The floor row says which installation this is: 32 hexadecimal digits.
  bool has_identity(Deadline deadline);
  // Makes it again where it is missing, with a token above all that were ever handed out.
  void make_floor(Deadline deadline);
  void make_identity(Deadline deadline);
  // What the tables and the view are, one line each, in order: see migrate/structure.hpp.
  std::vector<std::string> structure(Deadline deadline);
  // All that the server says of them, in its own words.
  std::vector<std::string> details(Deadline deadline);
  // Whether the role of this connection may do that with it: "select", "insert", "update", "delete" or "see" (in the
  // catalog), and "lock", "waiter", "holder", "status" or "history". Asked without doing it; true where the database
  // has no such rights. Not in a transaction, but for "see".
  bool may(std::string_view verb, std::string_view part, Deadline deadline);
  // What the role of this connection lacks to be a "runtime" or "read_only" one: "UPDATE on resource_lock", …
  std::vector<std::string> missing_rights(std::string_view role, Deadline deadline);
  std::int64_t live_leases(Deadline deadline);

  // A transaction that can only read, so that questions are answered as of one moment; or nothing, before
  // end_reading().
  void begin_reading(Deadline deadline) { connection_.script(text("begin_reading"), deadline); }
  void end_reading(Deadline deadline) { connection_.script(text("end_reading"), deadline); }

  void create(Deadline deadline);
  void drop(Deadline deadline);
  void insert(const Migration& migration, const Migrator& who, Duration lease, Deadline deadline);
  // The rest answer false if the row is not there for this migrator to change.
  bool take(int version, int steps_done, int steps_total, const Migrator& who, Duration lease, Deadline deadline);
  bool journal(int version, const Migrator& who, int steps_done, Duration lease, Deadline deadline);
  bool finish(int version, const Migrator& who, Deadline deadline);
  // As finish(), for a version that was not walked: the row says what `migration` does, and `state`.
  bool adopt(const Migration& migration, std::string_view state, const Migrator& who, Deadline deadline);
  bool fail(int version, const Migrator& who, std::string_view error, Deadline deadline);
  bool remove(int version, const Migrator& who, Deadline deadline);

  // 0 not done, 1 done, else different; empty: the step has no probe.
  std::optional<std::int64_t> probe(bool up, int version, std::size_t step, Deadline deadline);

  // Statements that only some databases have.
  bool has(std::string_view name) const noexcept { return statements_.has(name); }
  const std::string& text(std::string_view name) const { return statements_.at(name, {}).sql; }
  // The statements that give a role ("migrator", "runtime", "read_only") what it needs; empty: nothing can be granted
  // here. `grantee` goes in as it is.
  std::string grants(std::string_view role, std::string_view grantee) const;
  // The same in one line, to be added to a refusal: "; needed: …", or nothing.
  std::string needed(std::string_view role) const;
  // Whether a history of the locks is kept beside them, as far as this role may see it.
  bool keeps_locks(Deadline deadline);
  const Answer& run(std::string_view name, std::initializer_list<std::string_view> header,
                    std::initializer_list<Argument> arguments, Deadline deadline);
  void script(std::string_view sql, Deadline deadline) { writes_.script(sql, deadline); }
  void run_step(const Step& step, Deadline deadline);

  const dialects::TableNames& names() const noexcept { return names_; }

 private:
  // A question, whose answer comes from the database whatever becomes of writes.
  const Answer& ask(std::string_view name, std::initializer_list<std::string_view> header,
                    std::initializer_list<Argument> arguments, Deadline deadline);
  const Answer& read_rows(Deadline deadline);
  std::vector<std::string> lines(std::string_view name, Deadline deadline);

  dialects::Connection& connection_;
  dialects::Connection& writes_;
  const dialects::Dialect& dialect_;
  const dialects::TableNames names_;
  const dialects::Statements statements_;
};

}  // namespace dlock::migrate
