// What may be asked in a caller's transaction on SQLite, where the writer of a file is alone: how its state is told,
// how long it waits for the file, how it is ended, and kept from being committed.
#include "caller_connection.hpp"

#include "commit_refusal.hpp"
#include "dialects/hex.hpp"
#include "faults.hpp"
#include "handle.hpp"
#include "types/mutant.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <limits>

namespace dlock::dialects::sqlite {
namespace {

std::string path_of(sqlite3* database) {
  const char* path = sqlite3_db_filename(database, "main");
  return path == nullptr || *path == '\0' ? "the caller's database" : path;
}

TextRow ask(sqlite3* database, std::string_view sql) {
  sqlite3_stmt* prepared = nullptr;
  const int made = sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &prepared, nullptr);
  const Prepared statement(prepared);
  if (made != SQLITE_OK) throw failure_of(database, made, path_of(database));
  const int before = sqlite3_total_changes(database);
  const int columns = sqlite3_column_count(prepared);
  TextRow row;
  int code = SQLITE_OK;
  while ((code = sqlite3_step(prepared)) == SQLITE_ROW) {
    if (!row.empty()) continue;
    for (int column = 0; column < columns; ++column) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(prepared, column));
      if (text == nullptr) row.emplace_back();
      else row.emplace_back(std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(prepared, column))));
    }
  }
  if (code != SQLITE_DONE) throw failure_of(database, code, path_of(database));
  if (columns == 0)
    row.emplace_back(std::to_string(sqlite3_total_changes(database) != before ? sqlite3_changes(database) : 0));
  return row;
}

// What SQLite says of a BEGIN within a transaction, in the words of whoever ran it.
bool is_open_already(const std::exception& error) {
  return std::string_view(error.what()).find("within a transaction") != std::string_view::npos;
}

// The connection's own time-out, which is the only kind of busy handler that can be read and put back.
class BusyTimeout {
 public:
  BusyTimeout(sqlite3* database, Duration wait) : database_(database) {
    const auto row = ask(database, "PRAGMA busy_timeout");
    before_ = row.empty() ? 0 : std::stoi(row.front().value_or("0"));
    if (before_ > 0)
      set(static_cast<int>(std::min<std::int64_t>(wait.count() / 1000, std::numeric_limits<int>::max())));
  }
  ~BusyTimeout() {
    if (before_ > 0) set(before_);
  }
  BusyTimeout(const BusyTimeout&) = delete;
  BusyTimeout& operator=(const BusyTimeout&) = delete;

 private:
  void set(int milliseconds) noexcept { sqlite3_busy_timeout(database_, milliseconds); }
  sqlite3* database_;
  int before_ = 0;  // 0: none, or a handler of the caller's own, which stays
};

}  // namespace

TransactionConnection::TransactionConnection(sqlite3* database, const QuotedTable& table)
    : CallerConnection([database](std::string_view sql) { return ask(database, sql); }),
      database_(database),
      table_(table) {}

// Within a transaction none can be begun: that is all a runner can be asked. What fails otherwise has not answered.
bool TransactionConnection::in_transaction() {
  if (database_ != nullptr) return sqlite3_get_autocommit(database_) == 0;
  try {
    run("BEGIN");
  } catch (const std::exception& error) {
    if (is_open_already(error)) return true;
    throw;
  }
  try {
    run("ROLLBACK");
  } catch (...) { run("ROLLBACK"); }
  return false;
}

void TransactionConnection::check() {
  if (!in_transaction())
    throw NothingToSpoil(Cause::rejected, fmt::format("{}, best by BEGIN IMMEDIATE", no_transaction));
}

bool TransactionConnection::writes_alone() {
  return database_ == nullptr || sqlite3_txn_state(database_, nullptr) == SQLITE_TXN_WRITE;
}

TextRow TransactionConnection::run_waiting(std::string_view sql, Duration wait) {
  if (database_ == nullptr) return run(sql);
  const BusyTimeout timeout(database_, wait);
  return run(sql);
}

TextRow TransactionConnection::attempt(std::string_view sql, std::optional<Duration>) {
  return run_waiting(sql, Duration{});
}

bool TransactionConnection::fence(std::string_view sql, Duration wait, std::optional<Duration>) {
  const auto row = run_waiting(sql, wait);
  if (row.empty() || row.front() != "1") return false;
  if (!mark().empty()) run("SAVEPOINT " + mark());
  return true;
}

// By what the files are: one can be reached by several names.
std::optional<bool> TransactionConnection::is_at(std::string_view place) {
  if (database_ == nullptr || place.empty()) return std::nullopt;
  const char* path = sqlite3_db_filename(database_, "main");
  struct stat ours {
  }, theirs{};
  if (path == nullptr || *path == '\0') return false;  // in memory
  if (::stat(std::string(place).c_str(), &ours) != 0 || ::stat(path, &theirs) != 0) return std::nullopt;
  return ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

bool TransactionConnection::lacks_table() noexcept {
  try {
    return run(fmt::format("PRAGMA {}.table_info({})", table_.schema, table_.lock)).empty();
  } catch (...) {  // it does not answer
    return false;
  }
}

std::string TransactionConnection::where() noexcept {
  try {
    if (database_ != nullptr) return path_of(database_);
    const auto row = run("PRAGMA database_list");  // the first one is main
    return row.size() > 2 && !row[2].value_or("").empty() ? *row[2] : "the caller's database";
  } catch (...) { return "a database that does not answer"; }
}

// With a runner there is no hold on the connection but SQL: it takes no writes from here on, until its owner says so.
void TransactionConnection::doom(const EndSession& end_session) noexcept {
  if (database_ != nullptr) return spoil(end_session);
  for (int i = 0; i < most_attempts && !roll_back(); ++i) {}
  for (int i = 0; i < most_attempts && !succeeds("PRAGMA query_only = ON"); ++i) {}
}

// What fails, and what ends a statement of these, can have the whole transaction undone, and what comes next would be
// stored by itself: until its owner's ROLLBACK an empty one stands in its place.
void TransactionConnection::spoil(const EndSession&) noexcept {
  if (database_ == nullptr) return;
  const auto is_open = [&] {
    if (!in_transaction() && !planted("undone_not_replaced")) try {
        run("BEGIN");
      } catch (...) {}
    return in_transaction();
  };
  for (int i = 0; i < most_attempts; ++i)
    if (is_open() && refuse_commit(database_)) return;
  refuse_commit_by_hook(database_, is_open());
}

void TransactionConnection::begin(Duration wait) {
  if (database_ != nullptr) {
    if (in_transaction()) throw Failure(Cause::rejected, open_already);
    const BusyTimeout timeout(database_, wait);
    return begin_with("BEGIN IMMEDIATE");
  }
  // Which of them is open is not known before: what fails otherwise is left as it is.
  try {
    run("BEGIN IMMEDIATE");
  } catch (const std::exception& error) {
    if (!is_open_already(error)) throw;
    throw Failure(Cause::rejected, open_already);
  }
  begun();
}

// Behind the fence there is a savepoint that only the fenced transaction has.
void TransactionConnection::commit() {
  if (database_ != nullptr && !in_transaction()) throw Failure(Cause::rejected, ended_early);
  try {
    run("RELEASE " + mark());
  } catch (const std::exception& error) {
    if (std::string_view(error.what()).find("no such savepoint") == std::string_view::npos) throw;
    throw Failure(Cause::rejected, ended_early);
  }
  run("COMMIT");
}

TransactionConnection::Undone TransactionConnection::undo() noexcept {
  try {
    run("ROLLBACK TO " + mark());
    return Undone::to_the_fence;
  } catch (...) { return Undone::unknown; }
}

bool TransactionConnection::roll_back() noexcept {
  try {
    if (database_ == nullptr || in_transaction()) run("ROLLBACK");
    return true;
  } catch (...) {  // some failures roll back by themselves, and then there is nothing to roll back
  }
  try {
    return !in_transaction();
  } catch (...) { return false; }
}

void append_literal(std::string& sql, const Argument& argument) {
  if (const auto* number = std::get_if<std::int64_t>(&argument)) {
    sql += std::to_string(*number);
  } else if (const auto* text = std::get_if<std::string_view>(&argument)) {
    sql += "CAST(x'";
    append_hex(sql, *text);
    sql += "' AS TEXT)";
  } else {
    sql += "NULL";
  }
}

}  // namespace dlock::dialects::sqlite
