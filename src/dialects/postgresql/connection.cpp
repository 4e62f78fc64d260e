// How statements run on PostgreSQL: libpq's calls that do not block, and a deadline on each; which settings a session
// is given, when a pooler is taken to lend it, and how long a late answer is waited for.
#include "connection.hpp"

#include "dialects/readiness.hpp"
#include "faults.hpp"
#include "literals.hpp"
#include "opening.hpp"
#include "standby.hpp"
#include "types/mutant.hpp"
#include "types/owner.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace dlock::dialects::postgresql {
namespace {

constexpr Oid int2_type = 21, int4_type = 23, int8_type = 20;

// How long a statement waits for what another transaction has locked: lock_wait(), in the server's words.
constexpr std::string_view lock_patience = "50ms";
// Whether commits would be acknowledged before they are durable here.
constexpr std::string_view forgetful = "current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')";
std::string_view in_need_of_raising() noexcept { return planted("sync_commit_not_raised") ? "false" : forgetful; }
// An answer that takes longer than this to come never comes.
constexpr std::chrono::seconds longest_unanswered{2};
constexpr std::chrono::milliseconds time_to_look{20};
constexpr int unwanted = -1;

bool changes_rows(std::string_view command) {
  return command.starts_with("INSERT") || command.starts_with("UPDATE") || command.starts_with("DELETE");
}

std::int64_t number_in(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Never destroyed: exit() may end an engine that still uses it. A child must not find it half made.
const std::string& settings_in_transaction() {
  const ForkLock lock;
  static const std::string& settings = *new std::string(
      fmt::format("SELECT set_config('lock_timeout', '{}', true), set_config('statement_timeout', '0', true),"
                  " set_config('client_min_messages', 'warning', true),"
                  " CASE WHEN {} THEN set_config('synchronous_commit', 'on', true) END",
                  lock_patience, in_need_of_raising()));
  return settings;
}

}  // namespace

ServerConnection::ServerConnection(const Server& server, SessionUse use, Deadline deadline)
    : use_(use == SessionUse::own_session && *server.lends_sessions ? SessionUse::lent_session : use),
      lends_sessions_(server.lends_sessions),
      connection_(open_connection(server, deadline)),
      user_(PQuser(connection_.get())),
      prefix_("dlock_" + random_identity().substr(0, 12)) {
  PQsetNoticeReceiver(
      connection_.get(), [](void* self, const PGresult* notice) { static_cast<ServerConnection*>(self)->heed(notice); },
      this);
  if (use_ == SessionUse::own_session) make_settings(deadline);
}

// In one round trip, and only in the backend that the server has named to this client.
//  - Durable commits: whatever is weaker than "on" is raised to it, stronger settings stay.
//  - The warning that a standby has not confirmed a commit is wanted, and nothing that matters less.
//  - A plan made while the table was small would go on reading all of it when it has grown: nothing here wants that.
void ServerConnection::make_settings(Deadline deadline) {
  try {
    script(fmt::format("SELECT set_config('lock_timeout', '{}', false), set_config('statement_timeout', '0', false),"
                       " set_config('default_transaction_isolation', 'read committed', false),"
                       " set_config('plan_cache_mode', 'force_generic_plan', false),"
                       " set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false),"
                       " set_config('client_min_messages', 'warning', false),"
                       " CASE WHEN {} THEN set_config('synchronous_commit', 'on', false) END"
                       " WHERE pg_backend_pid() = {}",
                       lock_patience, in_need_of_raising(), PQbackendPID(connection_.get())),
           deadline);
    if (answer_.rows() == 0) use_ = SessionUse::lent_session;
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
  if (deadline.passed()) throw Failure(Cause::timed_out, "PostgreSQL: there was no time left to ask");
  if (unanswered_) catch_up_on_answers(deadline);
  else look_for_end();
  if (use_ == SessionUse::own_session && *lends_sessions_) use_ = SessionUse::lent_session;  // as another one found out
  began_ = unconfirmed_ = false;
}

void ServerConnection::heed(const PGresult* notice) noexcept {
  const char* severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
  const std::string_view weight = severity == nullptr ? "" : severity;
  ended_ = ended_ || weight == "FATAL" || weight == "PANIC";
  unconfirmed_ = unconfirmed_ || (gave_up_on_standby(notice) && !planted("standby_warning_unheard"));
}

// A server may also say that a setting has changed.
void ServerConnection::look_for_end() {
  const auto unasked = look_at_rest(PQsocket(connection_.get()));
  if (unasked == Unasked::nothing) return;
  const bool readable = PQconsumeInput(connection_.get()) != 0;
  PQisBusy(connection_.get());  // takes apart what was read
  if (unasked != Unasked::ended && readable && !ended_) return;
  usable_ = false;
  throw Failure(Cause::disconnected, "PostgreSQL: the connection had been ended while nothing was asked", "08006");
}

void ServerConnection::catch_up_on_answers(Deadline deadline) {
  // It may have come long ago, and nobody has looked.
  const auto overdue = later(*unanswered_, longest_unanswered);
  const auto look = std::max(overdue, later(BootClock::now(), time_to_look));
  std::optional<Failure> ignored;
  int good = 0;
  if (receive({unwanted, {}}, Sent::nothing_that_runs, deadline.no_later_than(look), ignored, good) == Received::late) {
    if (BootClock::now() < overdue)
      throw Failure(Cause::timed_out, "PostgreSQL: an earlier statement has no answer yet, and nothing was asked");
    broken(Sent::nothing_that_runs);
  }
  unanswered_.reset();
  if (ignored && ignored->cause() == Cause::stale_statement) {
    *lends_sessions_ = true;
    usable_ = false;
  }
  if (!usable_) broken(Sent::nothing_that_runs);
  leave_transaction(deadline);
  answer_.reset(0);
}

void ServerConnection::flush(int accepted, Sent sent, Deadline deadline) {
  if (accepted == 0) broken(sent);
  for (int unsent = PQflush(connection_.get()); unsent != 0; unsent = PQflush(connection_.get())) {
    if (unsent < 0) broken(sent);
    if (wait_until_ready(PQsocket(connection_.get()), POLLIN | POLLOUT, deadline) == 0) late(sent);
    if (PQconsumeInput(connection_.get()) == 0) broken(sent);
  }
}

// The commit of a statement is a result of its own, after the rows: the first bad one counts.
ServerConnection::Received ServerConnection::receive(const Expected& expected, Sent sent, const Deadline& deadline,
                                                     std::optional<Failure>& failure, int& good) {
  auto* const from = connection_.get();
  const bool pipeline = PQpipelineStatus(from) != PQ_PIPELINE_OFF;
  for (int command = 0;;) {
    while (PQisBusy(from) != 0) {
      if (wait_until_ready(PQsocket(from), POLLIN, deadline) == 0) return Received::late;
      if (PQconsumeInput(from) == 0) break;  // the result says it, in the server's words if there are some
    }
    const Result result(PQgetResult(from));
    if (!result) {
      if (!pipeline || PQstatus(from) == CONNECTION_BAD) break;
      ++command;
      continue;
    }
    const auto status = PQresultStatus(result.get());
    if (status == PGRES_PIPELINE_SYNC) break;
    if (status == PGRES_PIPELINE_ABORTED) continue;
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_EMPTY_QUERY) {
      if (!failure) good = command + 1;
      if (command >= expected.result && command <= expected.result + expected.more)
        read(result.get(), expected.rows_of_all);
    } else if (!failure) {
      // The server answers in order: what it refuses before the statement's turn, or ends with, kept that from running.
      const bool before = command < expected.result && PQresultErrorField(result.get(), PG_DIAG_SQLSTATE) != nullptr;
      failure.emplace(failure_in(result.get(), before ? Sent::nothing_that_runs : sent));
    }
  }
  if (PQstatus(from) == CONNECTION_BAD || (pipeline && PQexitPipelineMode(from) == 0)) usable_ = false;
  return Received::all;
}

ServerConnection::Received ServerConnection::finish_request(const Expected& expected, const Statement* statement,
                                                            Sent sent, Deadline deadline) {
  std::optional<Failure> failure;
  int good = 0;
  if (receive(expected, sent, deadline, failure, good) == Received::late) return Received::late;
  if (!expected.prepared_as.empty() && good > 0) prepared_.add(*statement, expected.prepared_as);
  if (!failure && unconfirmed_) throw unconfirmed_commit();
  if (!failure) return Received::all;
  if (failure->cause() == Cause::stale_statement && !planted("pooler_not_remembered")) *lends_sessions_ = true;
  if (failure->cause() == Cause::disconnected || failure->cause() == Cause::stale_statement) usable_ = false;
  leave_transaction(deadline);
  throw Failure(std::move(*failure));
}

// Only what begins with BEGIN, of its own, can leave one open.
void ServerConnection::leave_transaction(Deadline deadline) noexcept {
  if (!began_ || !usable_) return;
  began_ = false;
  if (PQtransactionStatus(connection_.get()) == PQTRANS_IDLE) return;
  try {
    std::optional<Failure> failure;
    int good = 0;
    flush(PQsendQuery(connection_.get(), "ROLLBACK"), Sent::nothing_that_runs, deadline);
    if (receive({unwanted, {}}, Sent::nothing_that_runs, deadline, failure, good) == Received::late || failure)
      usable_ = false;
  } catch (const std::exception&) { usable_ = false; }  // a failure, or out of memory
}

Failure ServerConnection::failure_in(const PGresult* result, Sent sent) const {
  const char* sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  if (sqlstate == nullptr)  // not the server's words, but libpq's on the connection
    return {Cause::disconnected, "PostgreSQL: " + in_one_line(PQresultErrorMessage(result)), "08006",
            sent == Sent::statement};
  return failure_of(sqlstate, text == nullptr ? "" : text, user_, sent == Sent::statement);
}

void ServerConnection::read(PGresult* result, bool added) {
  const auto width = static_cast<std::size_t>(PQnfields(result));
  if (PQresultStatus(result) == PGRES_TUPLES_OK && !(added && answer_.columns() == width)) {
    const auto affected = answer_.affected;
    answer_.reset(width);
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

ServerConnection::Expected ServerConnection::put(const Statement& statement) {
  auto* const to = connection_.get();
  const auto accepted = [this](int yes) {
    if (yes == 0) broken(Sent::nothing_that_runs);
  };
  const auto count = arguments_.count();
  const auto* values = arguments_.values();
  if (use_ == SessionUse::own_session) {
    if (const auto* known = prepared_.find(statement)) {
      accepted(PQsendQueryPrepared(to, known->c_str(), count, values, nullptr, nullptr, 0));
      return {};
    }
    Expected expected{1, fmt::format("{}_{}", prefix_, ++names_)};
    accepted(PQenterPipelineMode(to));
    accepted(PQsendPrepare(to, expected.prepared_as.c_str(), statement.sql.c_str(), 0, nullptr));
    accepted(PQsendQueryPrepared(to, expected.prepared_as.c_str(), count, values, nullptr, nullptr, 0));
    accepted(PQpipelineSync(to));
    return expected;
  }
  const auto send = [&](const char* sql, int with, const char* const* what) {
    accepted(PQsendQueryParams(to, sql, with, nullptr, what, nullptr, nullptr, 0));
  };
  // In a transaction that script() has begun, the settings are those of who began it.
  if (use_ == SessionUse::as_it_is || PQtransactionStatus(to) != PQTRANS_IDLE) {
    send(statement.sql.c_str(), count, values);
    return {};
  }
  began_ = true;
  accepted(PQenterPipelineMode(to));
  send(planted("lent_session_isolation") ? "BEGIN" : "BEGIN ISOLATION LEVEL READ COMMITTED", 0, nullptr);
  send(settings_in_transaction().c_str(), 0, nullptr);
  send(statement.sql.c_str(), count, values);
  send("COMMIT", 0, nullptr);
  accepted(PQpipelineSync(to));
  return {2, {}};
}

const Answer& ServerConnection::execute(const Statement& statement, Deadline deadline) {
  begin_request(deadline);
  const auto expected = put(statement);
  flush(1, Sent::statement, deadline);
  return finish_prepared(expected, statement, deadline);
}

const Answer& ServerConnection::finish_prepared(const Expected& expected, const Statement& statement,
                                                Deadline deadline) {
  try {
    if (finish_request(expected, &statement, Sent::statement, deadline) == Received::late) late(Sent::statement);
  } catch (const Failure& failure) {
    // 0A000: the table changed, and "cached plan must not change result type". If it is said of a plan that was made
    // just now, it is something else, which preparing again does not help.
    if (failure.code() != "0A000" || use_ != SessionUse::own_session || !expected.prepared_as.empty()) throw;
    usable_ = false;
    throw Failure(Cause::stale_statement, failure.what(), failure.code());
  }
  return answer_;
}

bool ServerConnection::post(const Statement& statement, std::span<const Argument> arguments, Deadline deadline) {
  arguments_.set(arguments);
  begin_request(deadline);
  const auto expected = put(statement);
  flush(1, Sent::statement, deadline);
  if (finish_request(expected, &statement, Sent::statement, deadline) == Received::all) return true;
  unanswered_ = BootClock::now();
  return false;
}

const Answer& ServerConnection::run(const Statement& statement, std::span<const Argument> arguments,
                                    Deadline deadline) {
  if (statement.hinted("packet")) return run_packet(statement, arguments, deadline);
  arguments_.set(arguments);
  return execute(statement, deadline);
}

// One transaction, unless it says otherwise; the answer is of the last that has rows.
const Answer& ServerConnection::run_text(const Statement& statement, std::span<const Argument> arguments,
                                         Deadline deadline) {
  auto sql = with_literals(statement, arguments, append_literal);
  if (use_ == SessionUse::lent_session && PQtransactionStatus(connection_.get()) == PQTRANS_IDLE) {
    began_ = true;
    sql = fmt::format("BEGIN ISOLATION LEVEL READ COMMITTED;{};{};COMMIT", settings_in_transaction(), sql);
  }
  flush(PQsendQuery(connection_.get(), sql.c_str()), Sent::statement, deadline);
  if (finish_request({}, &statement, Sent::statement, deadline) == Received::late) late(Sent::statement);
  return answer_;
}

const Answer& ServerConnection::run_rows(const Statement& statement, std::span<const Argument> rows,
                                         std::size_t columns, Deadline deadline) {
  arguments_.set_rows(rows, columns);
  return execute(statement, deadline);
}

void ServerConnection::script(std::string_view sql, Deadline deadline) {
  begin_request(deadline);
  flush(PQsendQuery(connection_.get(), std::string(sql).c_str()), Sent::statement, deadline);
  if (finish_request({}, nullptr, Sent::statement, deadline) == Received::late) late(Sent::statement);
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

bool ServerConnection::drain(const Deadline& deadline) noexcept {
  usable_ = false;
  const int socket = PQsocket(connection_.get());
  return socket < 0 || dialects::drain(socket, deadline);
}

std::string ServerConnection::server() const { return server_name(connection_.get()); }

}  // namespace dlock::dialects::postgresql
