// This file knows how statements run on PostgreSQL: libpq's calls that do not block, and a deadline on each.
#include "connection.hpp"

#include "faults.hpp"
#include "opening.hpp"
#include "types/owner.hpp"
#include "waiting.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace dlock::dialects::DLOCK_DIALECT {
namespace {

constexpr Oid int2_type = 21, int4_type = 23, int8_type = 20;

bool changes_rows(std::string_view command) {
  return command.starts_with("INSERT") || command.starts_with("UPDATE") || command.starts_with("DELETE");
}

std::int64_t number_in(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

ServerConnection::ServerConnection(const Server& server, bool prepared_statements, Deadline deadline)
    : prepare_(prepared_statements),
      connection_(open_connection(server, deadline)),
      user_(PQuser(connection_.get())),
      prefix_("dlock_" + random_identity().substr(0, 12)) {
  if (prepare_) make_settings(deadline);
}

// In one round trip.
//  - Durable commits: whatever is weaker than "on" is raised to it, stronger settings stay.
//  - A plan made while the table was small would go on reading all of it when it has grown: nothing here wants that.
void ServerConnection::make_settings(Deadline deadline) {
  try {
    script(
        "SET lock_timeout = '50ms'; SET statement_timeout = 0; SET default_transaction_isolation = 'read committed';"
        "SET plan_cache_mode = 'force_generic_plan'; SET enable_seqscan = off; SET jit = off;"
        "SELECT set_config('synchronous_commit', 'on', false)"
        " WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')",
        deadline);
  } catch (const Failure& failure) {
    // Nothing that was asked for has been sent, whatever became of the settings.
    const bool passes = failure.cause() == Cause::disconnected || failure.cause() == Cause::timed_out;
    throw Failure(passes ? Cause::refused : failure.cause(),
                  fmt::format("{} (to the session's settings)", failure.what()), failure.code());
  }
}

void ServerConnection::broken(Sent sent) {
  usable_ = false;
  const auto text = in_one_line(PQerrorMessage(connection_.get()));
  throw Failure(Cause::disconnected, "PostgreSQL: " + (text.empty() ? "the connection had failed before" : text),
                "08006", sent == Sent::statement);
}

void ServerConnection::late(Sent sent) {
  usable_ = false;
  throw Failure(Cause::timed_out, "PostgreSQL: no answer in time", {}, sent == Sent::statement);
}

void ServerConnection::begin_request(Deadline deadline) {
  answer_.reset(0);
  if (!usable_ || PQstatus(connection_.get()) == CONNECTION_BAD) broken(Sent::nothing_that_runs);
  if (BootClock::now() >= deadline) throw Failure(Cause::timed_out, "PostgreSQL: there was no time left to ask");
}

void ServerConnection::finish_request(int accepted, Sent sent, Deadline deadline) {
  if (accepted == 0) broken(sent);
  for (int unsent = PQflush(connection_.get()); unsent != 0; unsent = PQflush(connection_.get())) {
    if (unsent < 0) broken(sent);
    if (!wait_for(connection_.get(), POLLIN | POLLOUT, deadline)) late(sent);
    if (PQconsumeInput(connection_.get()) == 0) broken(sent);
  }
  // The commit of the statement is a result of its own, after the rows: the first bad one counts.
  std::optional<Failure> failure;
  for (;;) {
    while (PQisBusy(connection_.get()) != 0) {
      if (!wait_for(connection_.get(), POLLIN, deadline)) late(sent);
      if (PQconsumeInput(connection_.get()) == 0) broken(sent);
    }
    const Result result(PQgetResult(connection_.get()));
    if (!result) break;
    const auto status = PQresultStatus(result.get());
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_EMPTY_QUERY) read(result.get());
    else if (!failure) failure.emplace(failure_in(result.get(), sent));
  }
  if (PQstatus(connection_.get()) == CONNECTION_BAD) usable_ = false;
  if (!failure) return;
  if (failure->cause() == Cause::disconnected || failure->cause() == Cause::stale_statement) usable_ = false;
  throw Failure(std::move(*failure));
}

Failure ServerConnection::failure_in(const PGresult* result, Sent sent) const {
  const char* sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  if (sqlstate == nullptr)  // not the server's words, but libpq's on the connection
    return {Cause::disconnected, "PostgreSQL: " + in_one_line(PQresultErrorMessage(result)), "08006",
            sent == Sent::statement};
  return failure_of(sqlstate, text == nullptr ? "" : text, user_, sent == Sent::statement);
}

void ServerConnection::read(PGresult* result) {
  if (PQresultStatus(result) == PGRES_TUPLES_OK) {
    const auto affected = answer_.affected;
    answer_.reset(static_cast<std::size_t>(PQnfields(result)));
    answer_.affected = affected;
  }
  if (changes_rows(PQcmdStatus(result))) answer_.affected = number_in(PQcmdTuples(result));
  const int rows = PQntuples(result), columns = PQnfields(result);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      Field& field = answer_.next();
      if (PQgetisnull(result, row, column) != 0) {
        field = nullptr;
        continue;
      }
      const std::string_view text(PQgetvalue(result, row, column),
                                  static_cast<std::size_t>(PQgetlength(result, row, column)));
      const auto type = PQftype(result, column);
      if (type == int8_type || type == int4_type || type == int2_type) field = number_in(text);
      else if (auto* kept = std::get_if<std::string>(&field)) kept->assign(text);
      else field.emplace<std::string>(text);
    }
  }
}

const std::string& ServerConnection::prepared(const Statement& statement, Deadline deadline) {
  if (const auto* known = prepared_.find(statement)) return *known;
  auto name = fmt::format("{}_{}", prefix_, prepared_.size());
  finish_request(PQsendPrepare(connection_.get(), name.c_str(), statement.sql.c_str(), 0, nullptr),
                 Sent::nothing_that_runs, deadline);
  return prepared_.add(statement, std::move(name));
}

const Answer& ServerConnection::execute(const Statement& statement, Deadline deadline) {
  begin_request(deadline);
  auto* const to = connection_.get();
  const auto count = arguments_.count();
  const auto* values = arguments_.values();
  if (!prepare_) {
    finish_request(PQsendQueryParams(to, statement.sql.c_str(), count, nullptr, values, nullptr, nullptr, 0),
                   Sent::statement, deadline);
    return answer_;
  }
  const auto known = prepared_.size();
  const auto& name = prepared(statement, deadline);
  const bool new_here = prepared_.size() > known;
  try {
    finish_request(PQsendQueryPrepared(to, name.c_str(), count, values, nullptr, nullptr, 0), Sent::statement,
                   deadline);
  } catch (const Failure& failure) {
    // 0A000: the table changed, and "cached plan must not change result type". If it is said of a plan that was made
    // just now, it is something else, which preparing again does not help.
    if (failure.code() != "0A000" || new_here) throw;
    usable_ = false;
    throw Failure(Cause::stale_statement, failure.what(), failure.code());
  }
  return answer_;
}

const Answer& ServerConnection::run(const Statement& statement, std::span<const Argument> arguments,
                                    Deadline deadline) {
  arguments_.set(arguments);
  return execute(statement, deadline);
}

const Answer& ServerConnection::run_rows(const Statement& statement, std::span<const Argument> rows,
                                         std::size_t columns, Deadline deadline) {
  arguments_.set_rows(rows, columns);
  return execute(statement, deadline);
}

void ServerConnection::script(std::string_view sql, Deadline deadline) {
  begin_request(deadline);
  finish_request(PQsendQuery(connection_.get(), std::string(sql).c_str()), Sent::statement, deadline);
}

std::string ServerConnection::default_schema(Deadline deadline) {
  script("SELECT current_schema()", deadline);
  return answer_.rows() == 0 ? std::string{} : answer_.text(0, 0);
}

// A process number alone may be another server's.
void ServerConnection::end_session(std::string_view session, Deadline deadline) {
  const auto gap = std::min(session.find(' '), session.size());
  script(fmt::format("SELECT pg_terminate_backend({}) "
                     "WHERE (extract(epoch FROM pg_catalog.pg_postmaster_start_time()) * 1000000)::bigint = {}",
                     number_in(session.substr(0, gap)), number_in(session.substr(std::min(gap + 1, session.size())))),
         deadline);
}

std::vector<std::string> ServerConnection::weaknesses(Deadline deadline) {
  script(
      "SELECT current_setting('fsync'), current_setting('full_page_writes'),"
      " current_setting('synchronous_commit'), current_setting('synchronous_standby_names') <> '',"
      " (SELECT count(*) FROM pg_catalog.pg_stat_replication"
      "   WHERE application_name NOT IN ('pg_basebackup', 'pg_receivewal'))",
      deadline);
  const auto &fsync = answer_.text(0, 0), &full_pages = answer_.text(0, 1), &commit = answer_.text(0, 2);
  const bool synchronous_standby = answer_.text(0, 3) == "t";
  std::vector<std::string> found;
  if (fsync != "on")
    found.emplace_back("fsync is off: a crash of the machine can damage the database, and forgets grants");
  if (full_pages != "on")
    found.emplace_back("full_page_writes is off: a crash of the machine can damage the lock table");
  if (commit == "off")
    found.emplace_back(
        "synchronous_commit is off: a crash forgets the last grants, and they are granted again with the "
        "same tokens");
  if ((commit == "local" || commit == "remote_write") && synchronous_standby)
    found.push_back(
        fmt::format("synchronous_commit is {}: a failover to a standby forgets the last grants, and they "
                    "are granted again with the same tokens",
                    commit));
  if (answer_.integer(0, 4) > 0 && !synchronous_standby)
    found.emplace_back(
        "synchronous_standby_names is empty, and a standby follows: a failover to it forgets the last "
        "grants, and they are granted again with the same tokens");
  return found;
}

std::string ServerConnection::server() const { return server_name(connection_.get()); }

}  // namespace dlock::dialects::DLOCK_DIALECT
