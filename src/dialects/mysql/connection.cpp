// How statements run on MySQL and MariaDB: Connector/C's calls that do not block, and a deadline on each; which
// settings a statement brings along where its session has none, and how long a late answer is waited for.
#include "connection.hpp"

#include "broken_pipe.hpp"
#include "caller_connection.hpp"
#include "dialects/readiness.hpp"
#include "faults.hpp"
#include "literals.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace dlock::dialects::mysql {
namespace {

// An answer that takes longer than this to come never comes.
constexpr std::chrono::seconds longest_unanswered{2};
constexpr std::chrono::milliseconds time_to_look{20};
constexpr std::chrono::seconds time_to_prepare{1};  // what is only posted; a connection that is late with it is lost

bool is_integer(enum_field_types type) {
  return type == MYSQL_TYPE_TINY || type == MYSQL_TYPE_SHORT || type == MYSQL_TYPE_LONG || type == MYSQL_TYPE_INT24 ||
         type == MYSQL_TYPE_LONGLONG || type == MYSQL_TYPE_YEAR;
}

}  // namespace

void ServerConnection::check_sendable(Deadline deadline) {
  if (!usable_) throw Failure(Cause::disconnected, "MySQL: the connection had failed before");
  if (deadline.passed()) throw Failure(Cause::timed_out, "MySQL: there was no time left to ask");
  if (unanswered_) return catch_up_on_answers(deadline);
  if (look_at_rest(mysql_get_socket(connection_)) != Unasked::ended) return;
  usable_ = false;
  throw Failure(Cause::disconnected, "MySQL: the server had ended the connection before, and nothing was asked");
}

void ServerConnection::catch_up_on_answers(const Deadline& deadline) {
  const BrokenPipeGuard guard(encrypted_);
  // It may have come long ago, and nobody has looked.
  const auto overdue = later(unanswered_->since, longest_unanswered);
  const auto look = std::max(overdue, later(BootClock::now(), time_to_look));
  int result = 0;
  if (!execute(unanswered_->handle, unanswered_->status, result, deadline.no_later_than(look))) {
    if (BootClock::now() < overdue)
      throw Failure(Cause::timed_out, "MySQL: an earlier statement has no answer yet, and nothing was asked");
    usable_ = false;
  } else if (result != 0) {
    const auto cause = failure_of(mysql_stmt_errno(unanswered_->handle), {}, server_.user, false).cause();
    usable_ = cause != Cause::disconnected && cause != Cause::refused;
  }
  if (!usable_) throw Failure(Cause::disconnected, "MySQL: the connection failed with an earlier statement");
  unanswered_.reset();
}

bool ServerConnection::execute(MYSQL_STMT* handle, int status, int& result, const Deadline& deadline) {
  while (status != 0) {
    const int happened = wait(status, deadline);
    if (happened < 0) {
      const auto since = unanswered_ ? unanswered_->since : BootClock::now();
      unanswered_ = Unanswered{handle, status, since};
      return false;
    }
    status = mysql_stmt_execute_cont(&result, handle, happened);
  }
  return true;
}

bool ServerConnection::post(const Statement& statement, std::span<const Argument> arguments, Deadline deadline) {
  if (!prepare_ || in_cluster()) {
    run(statement, arguments, deadline);
    return true;
  }
  check_sendable(deadline);
  const BrokenPipeGuard guard(encrypted_);
  const auto by = std::max(deadline.at(), later(BootClock::now(), time_to_prepare));
  auto& entry = prepared(statement, {by, deadline.stop()});
  bind(entry, statement, arguments);
  answer_.reset(0);
  int result = 0;
  if (!execute(entry.handle, mysql_stmt_execute_start(&result, entry.handle), result, deadline)) return false;
  if (result != 0) fail(entry.handle, true);
  return true;
}

int ServerConnection::wait(int status, Deadline deadline) {
  short events = 0;
  if ((status & MYSQL_WAIT_READ) != 0) events |= POLLIN;
  if ((status & MYSQL_WAIT_WRITE) != 0) events |= POLLOUT;
  if ((status & MYSQL_WAIT_EXCEPT) != 0) events |= POLLPRI;
  const short has = wait_until_ready(mysql_get_socket(connection_), events, deadline);
  if (has == 0) return -1;
  int happened = 0;
  if ((has & (POLLIN | POLLHUP | POLLERR)) != 0) happened |= MYSQL_WAIT_READ;
  if ((has & (POLLOUT | POLLERR)) != 0) happened |= MYSQL_WAIT_WRITE;
  if ((has & POLLPRI) != 0) happened |= MYSQL_WAIT_EXCEPT;
  happened &= status;
  return happened == 0 ? status & (MYSQL_WAIT_READ | MYSQL_WAIT_WRITE | MYSQL_WAIT_EXCEPT) : happened;
}

void ServerConnection::fail(unsigned number, const std::string& text, bool sent) {
  auto failure = failure_of(number, text, server_.user, sent);
  switch (failure.cause()) {
    case Cause::disconnected:
    case Cause::refused:
    case Cause::stale_statement: usable_ = false; break;
    default: break;
  }
  throw failure;
}

void ServerConnection::fail(bool sent) { fail(mysql_errno(connection_), mysql_error(connection_), sent); }

void ServerConnection::fail(MYSQL_STMT* statement, bool sent) {
  fail(mysql_stmt_errno(statement), mysql_stmt_error(statement), sent);
}

ServerConnection::Prepared& ServerConnection::prepared(const Statement& statement, Deadline deadline) {
  if (auto* known = prepared_.find(statement)) return *known;
  auto* handle = mysql_stmt_init(connection_);
  if (handle == nullptr) fail(2008, "out of memory", false);
  int result = 0;
  try {
    finish(mysql_stmt_prepare_start(&result, handle, statement.sql.data(), statement.sql.size()), deadline, false,
           [&](int happened) { return mysql_stmt_prepare_cont(&result, handle, happened); });
    if (result != 0) fail(handle, false);
  } catch (...) {
    if (usable_) mysql_stmt_close(handle);
    else prepared_.add(statement, {handle, {}, {}, {}});  // closed after its connection: nothing is sent any more
    throw;
  }
  const auto markers = statement.markers.size();
  return prepared_.add(statement, {handle, std::vector<MYSQL_BIND>(markers), std::vector<std::int64_t>(markers),
                                   std::vector<unsigned long>(markers)});
}

void ServerConnection::bind(Prepared& prepared, const Statement& statement, std::span<const Argument> arguments) {
  if (prepared.binds.empty()) return;
  for (std::size_t i = 0; i < statement.markers.size(); ++i) {
    const auto& argument = arguments[statement.markers[i]];
    auto& bind = prepared.binds[i];
    bind = MYSQL_BIND{};
    if (const auto* number = std::get_if<std::int64_t>(&argument)) {
      prepared.numbers[i] = *number;
      bind.buffer_type = MYSQL_TYPE_LONGLONG;
      bind.buffer = &prepared.numbers[i];
    } else if (const auto* text = std::get_if<std::string_view>(&argument)) {
      prepared.lengths[i] = text->size();
      bind.buffer_type = MYSQL_TYPE_STRING;
      bind.buffer = const_cast<char*>(text->data() == nullptr ? "" : text->data());
      bind.buffer_length = text->size();
      bind.length = &prepared.lengths[i];
    } else {
      bind.buffer_type = MYSQL_TYPE_NULL;
    }
  }
  if (mysql_stmt_bind_param(prepared.handle, prepared.binds.data()) != 0) fail(prepared.handle, false);
}

void ServerConnection::fetch(Prepared& prepared, Deadline deadline) {
  auto* handle = prepared.handle;
  int result = 0;
  finish(mysql_stmt_store_result_start(&result, handle), deadline, true,
         [&](int happened) { return mysql_stmt_store_result_cont(&result, handle, happened); });
  if (result != 0) fail(handle, true);
  const std::unique_ptr<MYSQL_RES, void (*)(MYSQL_RES*)> meta(mysql_stmt_result_metadata(handle), mysql_free_result);
  const auto columns = mysql_num_fields(meta.get());
  answer_.reset(columns);
  auto& cells = prepared.cells;
  auto& binds = prepared.columns;
  cells.assign(columns, {});
  binds.assign(columns, {});
  for (unsigned i = 0; i < columns; ++i) {
    binds[i].length = &cells[i].length;
    binds[i].is_null = &cells[i].null;
    binds[i].error = &cells[i].error;
    if (is_integer(mysql_fetch_field_direct(meta.get(), i)->type)) {
      binds[i].buffer_type = MYSQL_TYPE_LONGLONG;
      binds[i].buffer = &cells[i].number;
    } else {
      binds[i].buffer_type = MYSQL_TYPE_STRING;  // no room yet: the length first
    }
  }
  if (mysql_stmt_bind_result(handle, binds.data()) != 0) fail(handle, true);
  for (int code = mysql_stmt_fetch(handle); code != MYSQL_NO_DATA; code = mysql_stmt_fetch(handle)) {
    if (code == 1) fail(handle, true);
    for (unsigned i = 0; i < columns; ++i) {
      Field& field = answer_.next();
      if (cells[i].null != 0) {
        field = nullptr;
      } else if (binds[i].buffer_type == MYSQL_TYPE_LONGLONG) {
        field = cells[i].number;
      } else {
        std::string text(cells[i].length, '\0');
        MYSQL_BIND whole{};
        whole.buffer_type = MYSQL_TYPE_STRING;
        whole.buffer = text.data();
        whole.buffer_length = text.size();
        if (!text.empty() && mysql_stmt_fetch_column(handle, &whole, i, 0) != 0) fail(handle, true);
        field = std::move(text);
      }
    }
  }
  mysql_stmt_free_result(handle);
}

void ServerConnection::run_prepared(const Statement& statement, std::span<const Argument> arguments,
                                    Deadline deadline) {
  auto& entry = prepared(statement, deadline);
  bind(entry, statement, arguments);
  answer_.reset(0);
  int result = 0;
  finish(mysql_stmt_execute_start(&result, entry.handle), deadline, true,
         [&](int happened) { return mysql_stmt_execute_cont(&result, entry.handle, happened); });
  if (result != 0) fail(entry.handle, true);
  if (mysql_stmt_field_count(entry.handle) > 0) fetch(entry, deadline);
  else answer_.affected = static_cast<std::int64_t>(mysql_stmt_affected_rows(entry.handle));
  insert_id_ = mysql_stmt_insert_id(entry.handle);
}

void ServerConnection::run_once(const Statement& statement, std::span<const Argument> arguments, Deadline deadline) {
  const bool tells_id = statement.hinted("insert_id") || statement.hinted("wanted");
  const auto ask = [&] {
    if (statement.hinted("packet"))
      run_packet(with_settings(statement, with_literals(statement, arguments, append_literal)), deadline);
    else if (prepare_) run_prepared(statement, arguments, deadline);
    else
      run_text(with_settings(statement, with_literals(statement, arguments, append_literal)) +
                   (tells_id ? insert_id_too : ""),
               deadline);
  };
  // The same is said of a floor row that is missing and of one that KILL QUERY kept it from reading.
  constexpr int most_times = 4;
  for (int times = 1;; ++times) {
    try {
      ask();
      break;
    } catch (const Failure& failure) {
      if (times == most_times || failure.code() != "1690") throw;
    }
  }
  if (tells_id) tell_insert_id(statement.hinted("wanted"), deadline);
}

// Where the session has no settings of its own, a statement that writes brings those along that it needs. They hold for
// it alone: SET TRANSACTION is for the next transaction, and SET STATEMENT for one statement, the first that changes
// rows.
std::string ServerConnection::with_settings(const Statement& statement, std::string sql) const {
  if (prepare_) return sql;
  if (sql.starts_with("SELECT") || sql.starts_with("EXPLAIN")) return sql.insert(0, first_);
  const auto place = statement.hinted("at_once") ? sql.find("UPDATE ") : 0;
  if ((statement.hinted("insert_id") || statement.hinted("at_once")) && mariadb_)
    sql.insert(place,
               fmt::format("SET STATEMENT sql_mode = '{}', innodb_lock_wait_timeout = 0, lock_wait_timeout = 0 FOR ",
                           sql_mode));
  return fmt::format("{}SET TRANSACTION ISOLATION LEVEL READ COMMITTED;{}", first_, sql);
}

void ServerConnection::read(MYSQL_RES* result) {
  const auto columns = mysql_num_fields(result);
  if (answer_.columns() != columns) answer_.reset(columns);
  const MYSQL_FIELD* fields = mysql_fetch_fields(result);
  while (MYSQL_ROW row = mysql_fetch_row(result)) {
    const unsigned long* lengths = mysql_fetch_lengths(result);
    for (unsigned i = 0; i < columns; ++i) {
      Field& field = answer_.next();
      if (row[i] == nullptr) field = nullptr;
      else if (is_integer(fields[i].type)) field = static_cast<std::int64_t>(std::strtoll(row[i], nullptr, 10));
      else field = std::string(row[i], lengths[i]);
    }
  }
}

void ServerConnection::query(const std::string& sql, Deadline deadline) {
  answer_.reset(0);
  std::int64_t affected = 0;
  committed_ = false;
  changed_.clear();
  int result = 0;
  finish(mysql_real_query_start(&result, connection_, sql.data(), sql.size()), deadline, true,
         [&](int happened) { return mysql_real_query_cont(&result, connection_, happened); });
  if (result != 0) fail(true);
  for (;;) {
    MYSQL_RES* rows = nullptr;
    finish(mysql_store_result_start(&rows, connection_), deadline, true,
           [&](int happened) { return mysql_store_result_cont(&rows, connection_, happened); });
    if (rows != nullptr) {
      read(rows);
      mysql_free_result(rows);
    } else if (mysql_field_count(connection_) > 0) {
      fail(true);
    } else {
      changed_.push_back(static_cast<std::int64_t>(mysql_affected_rows(connection_)));
      answer_.affected = affected += changed_.back();
      insert_id_ = mysql_insert_id(connection_);
      const bool open = (connection_->server_status & SERVER_STATUS_IN_TRANS) != 0;
      committed_ |= affected > 0 && !open;
    }
    if (mysql_more_results(connection_) == 0) break;
    if (next_result(deadline) > 0) fail(true);
  }
  answer_.affected = affected;
}

void ServerConnection::script(std::string_view sql, Deadline deadline) {
  check_sendable(deadline);
  const BrokenPipeGuard guard(encrypted_);
  query(std::string(sql), deadline);
}

const Answer& ServerConnection::ask(const std::string& sql, Deadline deadline) {
  check_sendable(deadline);
  const BrokenPipeGuard guard(encrypted_);
  query(sql, deadline);
  return answer_;
}

// As a CallerConnection has called it: its number, and which server that is a number of.
void ServerConnection::end_session(std::string_view session, Deadline deadline) {
  const auto gap = std::min(session.find(' '), session.size());
  std::uint64_t number = 0;
  std::from_chars(session.data(), session.data() + gap, number);
  const auto& answer = ask(fmt::format("SELECT {}, CAST(CONNECTION_ID() AS CHAR)", server_place), deadline);
  // What stands in between has numbers of its own.
  const bool here = answer.rows() == 1 && answer.text(0, 0) == session.substr(std::min(gap + 1, session.size())) &&
                    answer.text(0, 1) == std::to_string(mysql_thread_id(connection_));
  if (number != 0 && here) script(fmt::format("KILL {}", number), deadline);
}

std::string ServerConnection::default_schema(Deadline deadline) {
  check_sendable(deadline);
  const BrokenPipeGuard guard(encrypted_);
  query("SELECT DATABASE()", deadline);
  return answer_.rows() == 0 ? std::string{} : answer_.text(0, 0);
}

}  // namespace dlock::dialects::mysql
