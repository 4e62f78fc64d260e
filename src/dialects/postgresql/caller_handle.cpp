// What a caller's connection says of a failure, and what it is rid of before its transaction can be ended.
#include "caller_handle.hpp"

#include "faults.hpp"
#include "handle.hpp"
#include "types/mutant.hpp"

#include <sys/socket.h>

#include <string>

namespace dlock::dialects::postgresql {
namespace {

// idle_in_transaction_session_timeout: the transaction had ended before the statement came.
constexpr std::string_view idle_code = "25P03";

std::string field_of(const PGresult* result, int field) {
  const char* text = PQresultErrorField(result, field);
  return text == nullptr ? std::string{} : std::string{text};
}

[[noreturn]] void fail(PGconn* connection, const PGresult* result) {
  const auto sqlstate = field_of(result, PG_DIAG_SQLSTATE);
  if (PQstatus(connection) != CONNECTION_OK && sqlstate != idle_code)
    throw Failure(Cause::disconnected,
                  "PostgreSQL: the caller's connection broke: " + in_one_line(PQerrorMessage(connection)), {}, true);
  const char* user = PQuser(connection);
  auto text = field_of(result, PG_DIAG_MESSAGE_PRIMARY);
  if (text.empty()) text = PQerrorMessage(connection);
  throw failure_of(sqlstate, text, user == nullptr ? "" : user, sqlstate != idle_code);
}

}  // namespace

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
      else
        row.emplace_back(std::string(PQgetvalue(result.get(), 0, column),
                                     static_cast<std::size_t>(PQgetlength(result.get(), 0, column))));
    }
  }
  return row;
}

void clear_the_way(PGconn* connection) noexcept {
  if (PQpipelineStatus(connection) == PQ_PIPELINE_OFF || planted("unread_in_the_way")) return;
  PQpipelineSync(connection);
  // Between the results of two statements there is one null, and behind the last ones another.
  for (int nulls = 0; nulls < 3 && PQstatus(connection) == CONNECTION_OK && PQexitPipelineMode(connection) == 0;) {
    const Result result(PQgetResult(connection));
    nulls = result ? 0 : nulls + 1;
    const auto status = PQresultStatus(result.get());
    if (status != PGRES_COPY_IN && status != PGRES_COPY_OUT) continue;
    return end(connection);
  }
}

void end(PGconn* connection) noexcept {
  ::shutdown(PQsocket(connection), SHUT_RDWR);
  while (PQconsumeInput(connection) == 1) {}
}

}  // namespace dlock::dialects::postgresql
