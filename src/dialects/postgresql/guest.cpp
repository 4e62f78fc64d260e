// This file knows what may be asked in a caller's transaction on PostgreSQL without leaving a trace in its session.
#include "guest.hpp"

#include "dialects/hex.hpp"
#include "faults.hpp"
#include "handle.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dlock::dialects::DLOCK_DIALECT {
namespace {

// invalid_text_representation: how the fence's statement fails when the lease is not the caller's any more.
constexpr std::string_view refused_code = "22P02";
constexpr std::string_view refused_text = "dlock: lease lost";

// idle_in_transaction_session_timeout: the transaction had ended before the statement came.
constexpr std::string_view idle_code = "25P03";

std::string field_of(const PGresult* result, int field) {
  const char* text = PQresultErrorField(result, field);
  return text == nullptr ? std::string{} : std::string{text};
}

[[noreturn]] void fail(PGconn* connection, const PGresult* result) {
  const auto sqlstate = field_of(result, PG_DIAG_SQLSTATE);
  if (PQstatus(connection) != CONNECTION_OK && sqlstate != idle_code)
    throw Failure(Cause::disconnected, "PostgreSQL: the caller's connection broke: " + in_one_line(PQerrorMessage(connection)),
                  {}, true);
  const char* user = PQuser(connection);
  auto text = field_of(result, PG_DIAG_MESSAGE_PRIMARY);
  if (text.empty()) text = PQerrorMessage(connection);
  throw failure_of(sqlstate, text, user == nullptr ? "" : user, sqlstate != idle_code);
}

TextRow ask(PGconn* connection, std::string_view sql) {
  const Result result(PQexec(connection, std::string(sql).c_str()));
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) fail(connection, result.get());
  TextRow row;
  if (status == PGRES_COMMAND_OK) {
    row.emplace_back(PQcmdTuples(result.get()));
  } else if (PQntuples(result.get()) > 0) {
    for (int column = 0; column < PQnfields(result.get()); ++column) {
      if (PQgetisnull(result.get(), 0, column) != 0) row.emplace_back();
      else row.emplace_back(std::string(PQgetvalue(result.get(), 0, column),
                                        static_cast<std::size_t>(PQgetlength(result.get(), 0, column))));
    }
  }
  return row;
}

std::int64_t milliseconds(Duration duration) {
  constexpr Duration longest = std::chrono::hours{24} * 20;  // the settings are 32-bit
  return std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::milliseconds>(std::min(duration, longest)).count());
}

}  // namespace

TransactionGuest::TransactionGuest(PGconn* connection)
    : connection_(connection), send_([connection](std::string_view sql) { return ask(connection, sql); }) {}

void TransactionGuest::check() {
  if (connection_ == nullptr) {
    // Outside of a transaction this is an error.
    run("SAVEPOINT dlock_check");
    run("RELEASE SAVEPOINT dlock_check");
    return;
  }
  switch (PQtransactionStatus(connection_)) {
    case PQTRANS_INTRANS: return;
    case PQTRANS_IDLE:
      throw Failure(Cause::rejected, "no transaction is open on the connection that was handed over; begin one first");
    case PQTRANS_INERROR:
      throw Failure(Cause::rejected, "the transaction that was handed over has failed; roll it back first");
    case PQTRANS_ACTIVE:
      throw Failure(Cause::rejected, "a statement is under way on the connection that was handed over; read its results first");
    case PQTRANS_UNKNOWN: break;
  }
  throw Failure(Cause::disconnected, "PostgreSQL: the connection that was handed over is broken");
}

std::string TransactionGuest::one(std::string_view sql) {
  const auto row = run(sql);
  return row.empty() ? std::string{} : row.front().value_or("");
}

// A row can be locked in vain: when it was changed after the statement's snapshot, and cannot be had any more. Only the
// end of a savepoint lets go of it.
TextRow TransactionGuest::attempt(std::string_view sql) {
  run("SAVEPOINT dlock_attempt");
  TextRow row;
  try {
    row = run(sql);
  } catch (const Failure& failure) {
    if (failure.cause() != Cause::disconnected) {
      run("ROLLBACK TO SAVEPOINT dlock_attempt");
      run("RELEASE SAVEPOINT dlock_attempt");
    }
    throw;
  }
  if (row.empty()) run("ROLLBACK TO SAVEPOINT dlock_attempt");
  run("RELEASE SAVEPOINT dlock_attempt");
  return row;
}

bool TransactionGuest::fence(std::string_view sql, Duration wait) {
  const auto old = one("SHOW lock_timeout");
  const auto before = fmt::format("SET LOCAL lock_timeout = '{}ms'", milliseconds(wait));
  const auto after = fmt::format("SET LOCAL lock_timeout = '{}'", old);
  try {
    if (connection_ != nullptr) {
      run(fmt::format("{};{};{}", before, sql, after));
    } else {
      run(before);
      run(sql);
      run(after);
    }
    return true;
  } catch (const Failure& failure) {
    if (failure.code() == refused_code && std::string_view(failure.what()).find(refused_text) != std::string_view::npos)
      return false;
    throw;
  }
}

bool TransactionGuest::blind_to_new_rows() {
  const auto isolation = one("SHOW transaction_isolation");
  return isolation == "repeatable read" || isolation == "serializable";
}

void TransactionGuest::bound_idle(Duration bound) {
  constexpr std::string_view setting = "idle_in_transaction_session_timeout";
  run(fmt::format("SELECT set_config('{0}', '{1}ms', true) WHERE current_setting('{0}')::interval = '0' "
                  "OR current_setting('{0}')::interval > '{1}ms'",
                  setting, milliseconds(bound)));
}

void TransactionGuest::begin(Duration) {
  if (connection_ != nullptr && PQtransactionStatus(connection_) != PQTRANS_IDLE)
    throw Failure(Cause::rejected, "a transaction is open already on the connection that was handed over");
  run("BEGIN");
}

// The commit of a failed transaction is a rollback, and no error.
void TransactionGuest::commit() {
  if (connection_ == nullptr) run("SELECT 1");
  else if (PQtransactionStatus(connection_) != PQTRANS_INTRANS)
    throw Failure(Cause::serialization, "the transaction had failed or ended before its commit");
  run("COMMIT");
}

void TransactionGuest::roll_back() noexcept {
  try {
    if (connection_ == nullptr || PQtransactionStatus(connection_) != PQTRANS_IDLE) run("ROLLBACK");
  } catch (...) {  // without its connection the transaction is over too
  }
}

void append_literal(std::string& sql, const Argument& argument) {
  if (const auto* number = std::get_if<std::int64_t>(&argument)) {
    // In brackets: a cast binds tighter than a sign.
    fmt::format_to(std::back_inserter(sql), "({})", *number);
  } else if (const auto* text = std::get_if<std::string_view>(&argument)) {
    sql += "convert_from(decode('";
    append_hex(sql, *text);
    sql += "','hex'),'UTF8')";
  } else {
    sql += "NULL";
  }
}

}  // namespace dlock::dialects::DLOCK_DIALECT
