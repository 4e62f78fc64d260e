// This file knows what may be asked in a caller's transaction on SQLite, where the writer of a file is alone.
#include "guest.hpp"

#include "dialects/hex.hpp"
#include "faults.hpp"
#include "handle.hpp"

#include <algorithm>
#include <limits>

namespace dlock::dialects::DLOCK_DIALECT {
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
  if (columns == 0) row.emplace_back(std::to_string(sqlite3_total_changes(database) - before));
  return row;
}

// The connection's own time-out, which is the only kind of busy handler that can be read and put back.
class BusyTimeout {
 public:
  BusyTimeout(sqlite3* database, Duration wait) : database_(database) {
    const auto row = ask(database, "PRAGMA busy_timeout");
    before_ = row.empty() ? 0 : std::stoi(row.front().value_or("0"));
    if (before_ > 0) set(static_cast<int>(std::min<std::int64_t>(wait.count() / 1000, std::numeric_limits<int>::max())));
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

TransactionGuest::TransactionGuest(sqlite3* database)
    : database_(database), send_([database](std::string_view sql) { return ask(database, sql); }) {}

void TransactionGuest::check() {
  if (database_ != nullptr && sqlite3_get_autocommit(database_) != 0)
    throw Failure(Cause::rejected, "no transaction is open on the connection that was handed over; begin one first, best by "
                                   "BEGIN IMMEDIATE");
}

bool TransactionGuest::writes_alone() {
  return database_ == nullptr || sqlite3_txn_state(database_, nullptr) == SQLITE_TXN_WRITE;
}

TextRow TransactionGuest::run_waiting(std::string_view sql, Duration wait) {
  if (database_ == nullptr) return run(sql);
  const BusyTimeout timeout(database_, wait);
  return run(sql);
}

TextRow TransactionGuest::attempt(std::string_view sql) {
  try {
    return run_waiting(sql, Duration{});
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::locked) throw;
    return {};
  }
}

bool TransactionGuest::fence(std::string_view sql, Duration wait) {
  const auto row = run_waiting(sql, wait);
  return !row.empty() && row.front() == "1";
}

// A hook refuses the commit, which rolls the transaction back; a rollback takes the hooks away again, and with them
// whatever hooks the caller had.
void TransactionGuest::doom() noexcept {
  if (database_ == nullptr || sqlite3_get_autocommit(database_) != 0) return;
  sqlite3_commit_hook(database_, [](void*) { return 1; }, nullptr);
  sqlite3_rollback_hook(
      database_,
      [](void* database) {
        sqlite3_commit_hook(static_cast<sqlite3*>(database), nullptr, nullptr);
        sqlite3_rollback_hook(static_cast<sqlite3*>(database), nullptr, nullptr);
      },
      database_);
}

void TransactionGuest::begin(Duration wait) {
  if (database_ != nullptr && sqlite3_get_autocommit(database_) == 0)
    throw Failure(Cause::rejected, "a transaction is open already on the connection that was handed over");
  run_waiting("BEGIN IMMEDIATE", wait);
}

void TransactionGuest::roll_back() noexcept {
  try {
    if (database_ == nullptr || sqlite3_get_autocommit(database_) == 0) run("ROLLBACK");
  } catch (...) {  // some failures roll back by themselves
  }
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

}  // namespace dlock::dialects::DLOCK_DIALECT
