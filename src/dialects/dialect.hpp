// What a database must be able to do to carry dlock. Each folder beside this file is one database.
#pragma once

#include "dialects/caller_connection.hpp"
#include "dialects/canceller.hpp"
#include "dialects/listener.hpp"
#include "dialects/statement.hpp"
#include "types/clock.hpp"
#include "types/failure.hpp"
#include "types/removal_pace.hpp"
#include "types/row.hpp"
#include "types/url.hpp"

#include <dlock/credentials.hpp>
#include <dlock/duration.hpp>
#include <dlock/transaction.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::dialects {

// A statement over many rows of `columns` arguments each, row after row.
struct StatementOfRows {
  const Statement& statement;
  std::span<const Argument> rows;
  std::size_t columns;
};

// The rows of two statements that were committed together, which are equally wide, and how many the second has changed,
// as Answer::affected counts.
struct AnswerOfCommit {
  const Answer& rows;
  std::int64_t changed_by_second;
};

// One connection to the database, through its own client library.
// Threads: one at a time. Owns: the connection and what is prepared on it.
// Fails: every member throws Failure, and nothing else that is the database's fault. After a failure that leaves the
// state of the connection unknown (disconnected, timed out), usable() is false and it must be thrown away.
class Connection {
 public:
  virtual ~Connection() = default;

  // Runs one prepared statement in a transaction of its own (or in the one opened by script("BEGIN")), exactly one
  // round trip once it is prepared. All results are read to the end: what it answers is committed.
  // Arguments are in the order of the statement's header. The answer lives until the next call.
  virtual const Answer& run(const Statement& statement, std::span<const Argument> arguments, Deadline deadline) = 0;

  // Runs a statement over many rows of `columns` arguments each (row after row), in one transaction and one round trip.
  // How the rows enter the statement is the dialect's business; the answer is of the statement's last result.
  virtual const Answer& run_rows(const Statement& statement, std::span<const Argument> rows, std::size_t columns,
                                 Deadline deadline) = 0;

  // Runs two of them so, one after the other, in one transaction. Neither waits for a row. A failure that may not have
  // run leaves nothing of either. Empty: this connection cannot do that, and has sent nothing.
  virtual std::optional<AnswerOfCommit> run_in_one_commit(const StatementOfRows& /*first*/,
                                                          const StatementOfRows& /*second*/, Deadline) {
    return std::nullopt;
  }

  // Runs a statement whose answer nobody needs. False: there was none in time, and it is read before the next request;
  // the connection is as good as before.
  virtual bool post(const Statement& statement, std::span<const Argument> arguments, Deadline deadline) {
    run(statement, arguments, deadline);
    return true;
  }

  // Runs the text of one or more statements without arguments; answers are dropped. For migrations and BEGIN/COMMIT.
  virtual void script(std::string_view sql, Deadline deadline) = 0;

  // The schema unqualified names would be looked up in. Empty: none is selected.
  virtual std::string default_schema(Deadline deadline) = 0;

  // What is set up so that acknowledged grants can be forgotten, one sentence each, naming the setting and what it
  // costs. Throws Failure{rejected} if the set-up is wrong for a lock engine, with the remedy.
  virtual std::vector<std::string> weaknesses(Deadline deadline) = 0;

  // Ends another session of the server, as a CallerConnection has called it (EndSession).
  virtual void end_session(std::string_view /*session*/, Deadline) {}

  // How far a cluster that takes writes on all of its servers has come: whatever any of them has acknowledged before
  // this was asked lies behind it. CallerConnection::catch_up knows what to do with it. Empty: there is one server.
  virtual std::string position(Deadline) { return {}; }

  // How long a statement may take to find out that what it needs is locked, beside its way there and back.
  virtual Duration lock_wait() const noexcept { return {}; }

  // False after a failure that poisoned the connection.
  virtual bool usable() const noexcept = 0;
  // False while an answer to post() is still to come.
  virtual bool at_rest() const noexcept { return true; }

  // Of one that is thrown away while a request on it has no answer: asks nothing more, and waits until the server has
  // ended it. Whatever was sent has been done by then, or never will be (of a pooler, which ends it at once, that is
  // not known). False: it has not been ended in time.
  virtual bool drain(const Deadline&) noexcept { return true; }

  // Whether it can die without a sign, so that only silence tells.
  virtual bool can_stall() const noexcept { return true; }

  // Product and version, as a person would write them: "PostgreSQL 15.18".
  virtual std::string server() const = 0;
};

// Where and how to connect: made from a URL, checked, with everything wrong in it already reported.
// Threads: any.
class Connector {
 public:
  virtual ~Connector() = default;
  virtual std::unique_ptr<Connection> connect(Deadline deadline) const = 0;
  // The same place, for somebody else; what was learned of it is shared. Null: nobody logs in there.
  virtual std::unique_ptr<Connector> as(const Credentials&) const { return nullptr; }
  // For a connection that was made here. Throws Failure.
  virtual std::unique_ptr<Canceller> canceller(Connection& connection, Deadline deadline) const = 0;
  // Listens for releases of locks in this table, from its return on. Null: this database, or the way it is reached, has
  // nothing to listen to. Throws Failure.
  virtual std::unique_ptr<Listener> listener(const TableNames&, Deadline) const { return nullptr; }
  // Notifies for `engine`, the first 16 characters of every actor in its grants. Null: the statements notify by
  // themselves, or those who wait see it without. Nothing is sent here.
  virtual std::unique_ptr<ReleaseSignal> release_signal(const TableNames&, std::string_view /*engine*/) const {
    return nullptr;
  }
  // The target for messages: the URL without its password.
  virtual const std::string& target() const noexcept = 0;
};

// What an engine or a tool asks of its connections.
struct ConnectOptions {
  std::string application = "dlock";
  // False: nothing is prepared and no session setting is made (transaction poolers), but see waits_for_locks. A pooler
  // that is recognised is as good.
  bool prepared_statements = true;
  // True: a statement waits for locks as the server is set up to, and what it means is set for the session where that
  // depends on defaults of the server's (MySQL). False: only briefly, since a lock that is held is an answer.
  bool waits_for_locks = false;
  bool create = false;  // make the database where it is a file that is not there yet
};

// One version of the table: how to get from version - 1 to it, and back.
struct Migration {
  int version = 0;
  std::string_view name;  // "create_resource_lock"
  std::string_view up, down;
  std::string_view structure{};  // what it makes, one line each, as the migrator's statement of that name tells it
};

// The longest name that the database takes as it is.
struct IdentifierLimit {
  std::size_t characters = 63, bytes = 63;
};

// The texts of a folder: the statements on the lock table (lock.sql, many.sql, waiting.sql, reading.sql, holders.sql,
// history.sql), those of the migrator, those that guard a table of somebody else (guard.sql), those that make what
// writes the history of the locks (recording.sql), the migrations (migrations/<name>/), in order, and the table as it
// is today (schema/<name>.sql). The build embeds them: a generated source of each dialect defines, in its own
// namespace, `const Texts& embedded_texts() noexcept`.
struct Texts {
  std::string_view lock_sql, migrator_sql, guard_sql, recording_sql, schema_sql;
  std::span<const Migration> migrations;
};

// What there is to know of a database before it is connected to.
struct Traits {
  std::string_view name;                      // the folder's
  std::span<const std::string_view> schemes;  // the URL schemes that lead here
  Marker marker;
  char quote;                // around identifiers; doubled inside of them
  Duration smallest_margin;  // the least margin of trust that the resolution of the database's clock allows
  RemovalPace removal_pace;
  IdentifierLimit identifier_limit{};
  bool heard_by_holder = false;  // a release is heard only by who knows which engine has the name
};

// A database. One constant object per folder; nothing outside the folder names it.
class Dialect {
 public:
  // `texts` are its for as long as it is there.
  Dialect(const Traits& traits, const Texts& texts) : traits_(traits), texts_(texts) {}
  virtual ~Dialect() = default;
  Dialect(const Dialect&) = delete;
  Dialect& operator=(const Dialect&) = delete;

  const Traits& traits() const noexcept { return traits_; }
  const Texts& texts() const noexcept { return texts_; }
  std::string_view name() const noexcept { return traits_.name; }
  std::string quote(std::string_view identifier) const {
    std::string result(1, traits_.quote);
    for (const char c : identifier) {
      if (c == traits_.quote) result += c;
      result += c;
    }
    return result + traits_.quote;
  }

  // Throws Error{misuse} that names what is wrong with the URL.
  virtual std::unique_ptr<Connector> connector(const Url& url, const ConnectOptions& options) const = 0;

  // A caller's own transaction, of this dialect.
  virtual std::unique_ptr<CallerConnection> caller_connection(const TransactionRef& transaction,
                                                              const QuotedTable& table) const = 0;

  // Writes an argument into the text of a statement, so that it means the same under every setting of a session.
  virtual void append_literal(std::string& sql, const Argument& argument) const = 0;
  // A role as GRANT names it.
  virtual std::string grantee(std::string_view role) const { return quote(role); }

 private:
  const Traits traits_;
  const Texts& texts_;
};

// The dialects this library was built with. Generated from the folders.
std::span<const Dialect* const> all();

}  // namespace dlock::dialects
