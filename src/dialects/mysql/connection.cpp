// This file knows how statements run on MySQL and MariaDB: Connector/C's calls that do not block, and a deadline on each.
#include "connection.hpp"

#include "faults.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace dlock::dialects::DLOCK_DIALECT {
namespace {

constexpr std::string_view row_mark = "/*rows*/";
constexpr std::size_t packet_size = 4'000'000;  // of a list of rows: a quarter of the servers' usual limit

bool is_integer(enum_field_types type) {
  return type == MYSQL_TYPE_TINY || type == MYSQL_TYPE_SHORT || type == MYSQL_TYPE_LONG || type == MYSQL_TYPE_INT24 ||
         type == MYSQL_TYPE_LONGLONG || type == MYSQL_TYPE_YEAR;
}

// Text as hexadecimal digits, numbers as they are: nothing here needs quotes, so nothing can break out of them.
void append_tuple(std::string& list, std::span<const Argument> row) {
  list += list.empty() ? "(" : ",(";
  bool first = true;
  for (const auto& argument : row) {
    if (!first) list += ',';
    first = false;
    if (const auto* number = std::get_if<std::int64_t>(&argument)) {
      fmt::format_to(std::back_inserter(list), "{}", *number);
    } else if (const auto* text = std::get_if<std::string_view>(&argument)) {
      if (text->empty()) {
        list += "''";
        continue;
      }
      list += "0x";
      for (const char c : *text) fmt::format_to(std::back_inserter(list), "{:02x}", static_cast<unsigned char>(c));
    } else {
      list += "NULL";
    }
  }
  list += ')';
}

std::string with_rows(std::string_view sql, const std::string& list) {
  std::string result;
  for (auto at = sql.find(row_mark); at != std::string_view::npos; at = sql.find(row_mark)) {
    result += sql.substr(0, at);
    result += list;
    sql.remove_prefix(at + row_mark.size());
  }
  return result += sql;
}

}  // namespace

ServerConnection::~ServerConnection() {
  // A server that does not answer must not hold up the farewell.
  if (!usable_) ::shutdown(mysql_get_socket(connection_), SHUT_RDWR);
  mysql_close(connection_);
  for (auto& [text, prepared] : prepared_) mysql_stmt_close(prepared.handle);
}

int ServerConnection::wait(int status, Deadline deadline) {
  const int socket = mysql_get_socket(connection_);
  for (;;) {
    int timeout = 60'000;
    if (deadline != Deadline::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - BootClock::now()).count();
      if (left <= 0) return -1;
      timeout = static_cast<int>(std::min<std::int64_t>(left, timeout));
    }
    short events = 0;
    if ((status & MYSQL_WAIT_READ) != 0) events |= POLLIN;
    if ((status & MYSQL_WAIT_WRITE) != 0) events |= POLLOUT;
    if ((status & MYSQL_WAIT_EXCEPT) != 0) events |= POLLPRI;
    pollfd source{socket, events, 0};
    const int ready = ::poll(&source, 1, timeout);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    int happened = 0;
    if ((source.revents & (POLLIN | POLLHUP | POLLERR)) != 0) happened |= MYSQL_WAIT_READ;
    if ((source.revents & (POLLOUT | POLLERR)) != 0) happened |= MYSQL_WAIT_WRITE;
    if ((source.revents & POLLPRI) != 0) happened |= MYSQL_WAIT_EXCEPT;
    happened &= status;
    return happened == 0 ? status & (MYSQL_WAIT_READ | MYSQL_WAIT_WRITE | MYSQL_WAIT_EXCEPT) : happened;
  }
}

void ServerConnection::fail(unsigned number, const std::string& text, bool sent) {
  auto failure = failure_of(number, text, user_, sent);
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

void ServerConnection::be_patient(bool patient, Deadline deadline) {
  if (mariadb_) query(fmt::format("SET SESSION innodb_lock_wait_timeout = {}", patient ? 1 : 0), deadline);
}

ServerConnection::Prepared& ServerConnection::prepared(const Statement& statement, Deadline deadline) {
  auto& entry = prepared_[statement.sql];
  if (entry.handle != nullptr) return entry;
  auto* handle = mysql_stmt_init(connection_);
  if (handle == nullptr) fail(false);
  int result = 0;
  try {
    finish(mysql_stmt_prepare_start(&result, handle, statement.sql.data(), statement.sql.size()), deadline,
           [&](int happened) { return mysql_stmt_prepare_cont(&result, handle, happened); });
    if (result != 0) fail(handle, false);
  } catch (...) {
    if (usable_) mysql_stmt_close(handle);
    else entry.handle = handle;  // closed after its connection, so that nothing is sent any more
    if (usable_) prepared_.erase(statement.sql);
    throw;
  }
  entry.handle = handle;
  entry.answers_rows = mysql_stmt_field_count(handle) > 0;
  entry.binds.resize(statement.markers.size());
  entry.numbers.resize(statement.markers.size());
  entry.lengths.resize(statement.markers.size());
  return entry;
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
  finish(mysql_stmt_store_result_start(&result, handle), deadline,
         [&](int happened) { return mysql_stmt_store_result_cont(&result, handle, happened); });
  if (result != 0) fail(handle, true);
  const std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)> meta(mysql_stmt_result_metadata(handle), &mysql_free_result);
  const auto columns = mysql_num_fields(meta.get());
  answer_.reset(columns);
  struct Cell {
    std::int64_t number = 0;
    unsigned long length = 0;
    my_bool null = 0, error = 0;
  };
  std::vector<Cell> cells(columns);
  std::vector<MYSQL_BIND> binds(columns);
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

const Answer& ServerConnection::run(const Statement& statement, std::span<const Argument> arguments, Deadline deadline) {
  const bool patient = statement.hint == "patient";
  if (patient) be_patient(true, deadline);
  auto& entry = prepared(statement, deadline);
  bind(entry, statement, arguments);
  answer_.reset(0);
  int result = 0;
  finish(mysql_stmt_execute_start(&result, entry.handle), deadline,
         [&](int happened) { return mysql_stmt_execute_cont(&result, entry.handle, happened); });
  if (result != 0) fail(entry.handle, true);
  if (mysql_stmt_field_count(entry.handle) > 0) {
    fetch(entry, deadline);
  } else {
    answer_.affected = static_cast<std::int64_t>(mysql_stmt_affected_rows(entry.handle));
  }
  if (statement.hint == "insert_id") {
    answer_.reset(1);
    if (const auto id = mysql_stmt_insert_id(entry.handle); id != 0) answer_.next() = static_cast<std::int64_t>(id);
  }
  if (patient) {
    const auto affected = answer_.affected;
    be_patient(false, deadline);
    answer_.affected = affected;
  }
  return answer_;
}

const Answer& ServerConnection::run_rows(const Statement& statement, std::span<const Argument> rows, std::size_t columns,
                                         Deadline deadline) {
  // The text has the list twice; each piece of it is a packet and a transaction of its own.
  Answer whole;
  whole.reset(2);
  try {
    for (std::size_t at = 0; at < rows.size();) {
      std::string list;
      for (; at < rows.size() && list.size() < packet_size / 2; at += columns) append_tuple(list, rows.subspan(at, columns));
      auto sql = with_rows(statement.sql, list);
      if (mariadb_)
        sql = "SET SESSION innodb_lock_wait_timeout = 1;" + sql + ";SET SESSION innodb_lock_wait_timeout = 0";
      query(sql, deadline);
      for (std::size_t row = 0; row < answer_.rows(); ++row) {
        whole.next() = answer_.text(row, 0);
        whole.next() = answer_.integer(row, 1);
      }
    }
  } catch (...) {
    usable_ = false;  // its settings are those of a packet that broke off
    throw;
  }
  answer_ = std::move(whole);
  return answer_;
}

void ServerConnection::read(MYSQL_RES* result) {
  const auto columns = mysql_num_fields(result);
  answer_.reset(columns);
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
  int result = 0;
  finish(mysql_real_query_start(&result, connection_, sql.data(), sql.size()), deadline,
         [&](int happened) { return mysql_real_query_cont(&result, connection_, happened); });
  if (result != 0) fail(true);
  for (;;) {
    MYSQL_RES* rows = nullptr;
    finish(mysql_store_result_start(&rows, connection_), deadline,
           [&](int happened) { return mysql_store_result_cont(&rows, connection_, happened); });
    if (rows != nullptr) {
      read(rows);
      mysql_free_result(rows);
    } else if (mysql_field_count(connection_) > 0) {
      fail(true);
    }
    if (mysql_more_results(connection_) == 0) return;
    finish(mysql_next_result_start(&result, connection_), deadline,
           [&](int happened) { return mysql_next_result_cont(&result, connection_, happened); });
    if (result > 0) fail(true);
  }
}

void ServerConnection::script(std::string_view sql, Deadline deadline) { query(std::string(sql), deadline); }

std::string ServerConnection::default_schema(Deadline deadline) {
  query("SELECT DATABASE()", deadline);
  return answer_.rows() == 0 ? std::string{} : answer_.text(0, 0);
}

}  // namespace dlock::dialects::DLOCK_DIALECT
