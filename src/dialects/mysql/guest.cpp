// This file knows what may be asked in a caller's transaction on MySQL and MariaDB, where a statement that fails can
// take the whole transaction with it.
#include "guest.hpp"

#include "faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace dlock::dialects::DLOCK_DIALECT {
namespace {

[[noreturn]] void fail(MYSQL* connection) {
  const char* user = connection->user;
  throw failure_of(mysql_errno(connection), mysql_error(connection), user == nullptr ? "" : user, true);
}

TextRow ask(MYSQL* connection, std::string_view sql) {
  if (mysql_real_query(connection, sql.data(), sql.size()) != 0) fail(connection);
  const std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)> result(mysql_store_result(connection), &mysql_free_result);
  TextRow row;
  if (!result) {
    if (mysql_field_count(connection) > 0) fail(connection);
    row.emplace_back(std::to_string(mysql_affected_rows(connection)));
    return row;
  }
  if (MYSQL_ROW fields = mysql_fetch_row(result.get()); fields != nullptr) {
    const auto* lengths = mysql_fetch_lengths(result.get());
    for (unsigned column = 0; column < mysql_num_fields(result.get()); ++column) {
      if (fields[column] == nullptr) row.emplace_back();
      else row.emplace_back(std::string(fields[column], lengths[column]));
    }
  }
  return row;
}

unsigned status_of(MYSQL* connection) {
  unsigned status = 0;
  mariadb_get_infov(connection, MARIADB_CONNECTION_SERVER_STATUS, &status);
  return status;
}

bool in_transaction(MYSQL* connection) { return (status_of(connection) & SERVER_STATUS_IN_TRANS) != 0; }

// Such settings take whole seconds.
std::int64_t seconds(Duration duration) {
  constexpr Duration longest = std::chrono::hours{24} * 365;
  return std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(std::min(duration, longest)).count());
}

}  // namespace

TransactionGuest::TransactionGuest(MYSQL* connection)
    : connection_(connection), send_([connection](std::string_view sql) { return ask(connection, sql); }) {}

void TransactionGuest::check() {
  if (connection_ != nullptr) {
    if (connection_->status != MYSQL_STATUS_READY || mysql_more_results(connection_) != 0)
      throw Failure(Cause::rejected, "a result is left to read on the connection that was handed over; read it first");
    // With autocommit off the next statement begins a transaction.
    if (!in_transaction(connection_) && (status_of(connection_) & SERVER_STATUS_AUTOCOMMIT) != 0)
      throw Failure(Cause::rejected, "no transaction is open on the connection that was handed over; begin one first");
  }
  if (one("SELECT @@innodb_rollback_on_timeout") != "0")
    throw Failure(Cause::rejected,
                  "innodb_rollback_on_timeout is on: a wait for a lock that ends in vain would undo the whole transaction, "
                  "and what follows would be stored without it; switch it off on the server");
}

std::string TransactionGuest::one(std::string_view sql) {
  const auto row = run(sql);
  return row.empty() ? std::string{} : row.front().value_or("");
}

bool TransactionGuest::is_mariadb() {
  if (!mariadb_)
    mariadb_ = connection_ != nullptr ? mariadb_connection(connection_) != 0
                                      : one("SELECT VERSION()").find("MariaDB") != std::string::npos;
  return *mariadb_;
}

// A session of MariaDB that never waits cannot skip locked rows: error 1180, and it undoes what the transaction wrote.
TextRow TransactionGuest::attempt(std::string_view sql) {
  return run(is_mariadb() ? fmt::format("SET STATEMENT innodb_lock_wait_timeout=1 FOR {}", sql) : std::string(sql));
}

bool TransactionGuest::fence(std::string_view sql, Duration wait) {
  const auto row = run(is_mariadb() ? fmt::format("SET STATEMENT innodb_lock_wait_timeout={} FOR {}", seconds(wait), sql)
                                    : std::string(sql));
  return !row.empty() && row.front() == "1";
}

// There is no such setting of a transaction, only of the session: it is made where it can be taken back.
void TransactionGuest::bound_idle(Duration bound) {
  if (!own_ || !is_mariadb()) return;
  const auto before = one("SELECT @@idle_write_transaction_timeout");
  if (before != "0" && std::stoll(before) <= seconds(bound)) return;
  run(fmt::format("SET SESSION idle_write_transaction_timeout = {}", seconds(bound)));
  idle_before_ = before;
}

void TransactionGuest::restore_idle_bound() noexcept {
  if (!idle_before_) return;
  try {
    run(fmt::format("SET SESSION idle_write_transaction_timeout = {}", *idle_before_));
  } catch (...) {  // the session is gone, and its settings with it
  }
  idle_before_.reset();
}

// The connection goes, and the transaction with it. Killing oneself needs no right.
void TransactionGuest::doom() noexcept {
  try {
    run("KILL CONNECTION_ID()");
  } catch (...) {  // 1927, as it should be
  }
}

void TransactionGuest::begin(Duration) {
  if (connection_ != nullptr && in_transaction(connection_))
    throw Failure(Cause::rejected, "a transaction is open already on the connection that was handed over");
  run("START TRANSACTION");
  own_ = true;
}

// After a deadlock the server has rolled everything back, and a commit would say nothing of it.
void TransactionGuest::commit() {
  if (connection_ != nullptr && !in_transaction(connection_))
    throw Failure(Cause::serialization, "the transaction had ended before its commit");
  run("COMMIT");
  restore_idle_bound();
}

void TransactionGuest::roll_back() noexcept {
  try {
    run("ROLLBACK");
  } catch (...) {  // without its connection the transaction is over too
  }
  restore_idle_bound();
}

}  // namespace dlock::dialects::DLOCK_DIALECT
