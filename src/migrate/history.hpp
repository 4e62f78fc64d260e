// What the migrator asks of a database: which versions were applied, when, by whom, which are half done; what is there,
// and which rights a role has or lacks.
#pragma once

#include "dialects/dialect.hpp"
#include "dialects/statement.hpp"
#include "migrate/migrations.hpp"
#include "types/clock.hpp"

#include <dlock/duration.hpp>
#include <dlock/schema.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::migrate {

// By when any of the migrator's own statements is answered.
inline Deadline soon() noexcept { return later(BootClock::now(), std::chrono::seconds{30}); }

inline constexpr std::int64_t history_format = 1;  // the columns of format 1 stay in every later one

// One version, as it is in the database.
struct HistoryRow : schema::Version {
  std::string owner{};
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

// A statement with one argument, which goes in as it is.
std::string inserted(const dialects::Statement& statement, std::string_view value);

// Statements that grant, in one line, to be added to a refusal: "; needed: …", or nothing.
std::string as_needed(std::string grants);

// The statements of a dialect's migrator on one connection.
// Threads: one at a time. Fails: Failure.
class History {
 public:
  // `writes`: where everything goes that is not a question; the same connection if there is none. `deadline`: of all
  // statements that are given none; if there is none, each has its own time.
  History(dialects::Connection& connection, const dialects::Dialect& dialect, const std::vector<Migration>& migrations,
          dialects::TableNames names, dialects::Connection* writes = nullptr, std::optional<Deadline> deadline = {});

  // Looks into the catalog, and reads the history only if it is there. Creates nothing.
  SchemaSnapshot find();

  // The floor row is there. Reads every column of all tables of today, so that a missing one is a Failure{schema}.
  bool has_floor();
  // Likewise, of any version.
  bool has_some_floor();
  // The floor row says which installation this is: 32 hexadecimal digits.
  bool has_identity();
  // Makes it again where it is missing, with a token above all that were ever handed out.
  void make_floor();
  void make_identity();
  // What the tables and the view are, one line each, in order: see structure_of().
  std::vector<std::string> structure();
  // All that the server says of them, in its own words.
  std::vector<std::string> details();
  // Whether the role of this connection may do that with it: "select", "insert", "update", "delete" or "see" (in the
  // catalog), and "lock", "waiter", "holder", "status" or "history". Asked without doing it; true where the database
  // has no such rights. Not in a transaction, but for "see".
  bool may(std::string_view verb, std::string_view part);
  // What the role of this connection lacks to be a "runtime" or "read_only" one: "UPDATE on resource_lock", …
  std::vector<std::string> missing_rights(std::string_view role);
  std::int64_t live_leases();

  // A transaction that can only read, so that questions are answered as of one moment; or nothing, before
  // end_reading().
  void begin_reading() { connection_.script(text("begin_reading"), until()); }
  void end_reading() { connection_.script(text("end_reading"), until()); }

  void create();
  void drop();
  void insert(const Migration& migration, const Migrator& who, Duration lease);
  // The rest answer false if the row is not there for this migrator to change.
  bool take(int version, int steps_done, int steps_total, const Migrator& who, Duration lease);
  bool journal(int version, const Migrator& who, int steps_done, Duration lease);
  bool finish(int version, const Migrator& who);
  // As finish(), for a version that was not walked: the row says what `migration` does, and `state`.
  bool adopt(const Migration& migration, std::string_view state, const Migrator& who);
  bool fail(int version, const Migrator& who, std::string_view error);
  bool remove(int version, const Migrator& who);

  // 0 not done, 1 done, else different; empty: the step has no probe.
  std::optional<std::int64_t> probe(bool up, int version, std::size_t step);

  // Statements that only some databases have.
  bool has(std::string_view name) const noexcept { return statements_.has(name); }
  const std::string& text(std::string_view name) const { return statements_.at(name, {}).sql; }
  // The statements that give a role ("migrator", "runtime", "read_only") what it needs; empty: nothing can be granted
  // here. `grantee` goes in as it is.
  std::string grants(std::string_view role, std::string_view grantee) const;
  // The same in one line, to be added to a refusal: "; needed: …", or nothing.
  std::string needed(std::string_view role) const { return as_needed(grants(role, "the role")); }
  // Throws a refusal that does not say what is needed for it again, with that.
  void add_right(const Failure& failure, std::string_view role) const;
  // Whether a history of the locks is kept beside them, as far as this role may see it.
  bool keeps_locks();
  const Answer& run(std::string_view name, std::initializer_list<std::string_view> header,
                    std::initializer_list<Argument> arguments);
  void script(std::string_view sql, Deadline deadline) { writes_.script(sql, deadline); }
  void run_step(const Step& step, Deadline deadline);
  bool usable() const noexcept { return writes_.usable(); }

  const dialects::TableNames& names() const noexcept { return names_; }

 private:
  Deadline until() const { return deadline_ ? *deadline_ : soon(); }
  // A question, whose answer comes from the database whatever becomes of writes.
  const Answer& ask(std::string_view name, std::initializer_list<std::string_view> header,
                    std::initializer_list<Argument> arguments);
  const Answer& read_rows();
  std::vector<std::string> lines(std::string_view name);

  dialects::Connection& connection_;
  dialects::Connection& writes_;
  const dialects::Dialect& dialect_;
  const dialects::TableNames names_;
  const dialects::Statements statements_;
  const std::optional<Deadline> deadline_;
};

}  // namespace dlock::migrate
