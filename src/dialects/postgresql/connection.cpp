// This file knows how statements run on PostgreSQL: libpq's calls that do not block, and a deadline on each.
#include "connection.hpp"

#include "faults.hpp"
#include "types/owner.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

namespace dlock::dialects::DLOCK_DIALECT {
namespace {

constexpr int oldest_version = 120000;
constexpr Oid int2_type = 21, int4_type = 23, int8_type = 20;

// libpq's messages can have several lines.
std::string in_one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  for (auto at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) text.replace(at, 1, "; ");
  text.erase(std::remove(text.begin(), text.end(), '\t'), text.end());
  return text;
}

// An element of an array literal: always in double quotes, with \ before " and \.
void append_element(std::string& literal, const Argument& argument) {
  literal += literal.empty() ? '{' : ',';
  if (std::holds_alternative<std::nullptr_t>(argument)) {
    literal += "NULL";
  } else if (const auto* number = std::get_if<std::int64_t>(&argument)) {
    fmt::format_to(std::back_inserter(literal), "{}", *number);
  } else {
    literal += '"';
    for (const char c : std::get<std::string_view>(argument)) {
      if (c == '"' || c == '\\') literal += '\\';
      literal += c;
    }
    literal += '"';
  }
}

bool changes_rows(std::string_view command) {
  return command.starts_with("INSERT") || command.starts_with("UPDATE") || command.starts_with("DELETE");
}

}  // namespace

ServerConnection::ServerConnection(const Server& server, bool prepared_statements, Deadline deadline)
    : user_(server.user), password_(server.password), prepare_(prepared_statements) {
  connect(server, deadline);
  if (prepare_) make_settings(deadline);
}

std::string ServerConnection::without_password(std::string text) const {
  if (password_.empty()) return text;
  for (auto at = text.find(password_); at != std::string::npos; at = text.find(password_, at + 3))
    text.replace(at, password_.size(), "***");
  return text;
}

void ServerConnection::connect(const Server& server, Deadline deadline) {
  std::vector<const char*> keywords, values;
  for (const auto& [key, value] : server.keywords) {
    keywords.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  keywords.push_back(nullptr);
  values.push_back(nullptr);
  connection_.reset(PQconnectStartParams(keywords.data(), values.data(), 0));
  if (!connection_) throw Failure(Cause::refused, "PostgreSQL: out of memory");
  const auto refused = [&] {
    return connect_failure(without_password(in_one_line(PQerrorMessage(connection_.get()))), user_);
  };
  if (PQstatus(connection_.get()) == CONNECTION_BAD) throw refused();
  for (auto state = PGRES_POLLING_WRITING; state != PGRES_POLLING_OK; state = PQconnectPoll(connection_.get())) {
    if (state == PGRES_POLLING_FAILED) throw refused();
    if (!wait(state == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline))
      throw Failure(Cause::refused, fmt::format("PostgreSQL: no connection to {} in time", server.target));
  }
  PQsetnonblocking(connection_.get(), 1);
  if (PQserverVersion(connection_.get()) < oldest_version)
    throw Failure(Cause::rejected, fmt::format("{} is too old: 12 is the oldest supported", this->server()));
  prefix_ = "dlock_" + random_identity().substr(0, 12);
}

// In one round trip. Durable commits: whatever is weaker than "on" is raised to it, stronger settings stay.
void ServerConnection::make_settings(Deadline deadline) {
  script(
      "SET lock_timeout = '50ms'; SET statement_timeout = 0; SET default_transaction_isolation = 'read committed';"
      "SET plan_cache_mode = 'force_generic_plan';"
      "SELECT set_config('synchronous_commit', 'on', false)"
      " WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')",
      deadline);
}

bool ServerConnection::wait(short events, Deadline deadline) {
  for (;;) {
    int timeout = -1;
    if (deadline != Deadline::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - BootClock::now()).count();
      if (left <= 0) return false;
      timeout = static_cast<int>(std::min<std::int64_t>(left, 60'000));
    }
    pollfd source{PQsocket(connection_.get()), events, 0};
    const int ready = ::poll(&source, 1, timeout);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // libpq will say what is wrong
  }
}

void ServerConnection::broken(bool may_have_run) {
  usable_ = false;
  throw Failure(Cause::disconnected,
                fmt::format("PostgreSQL: {}", without_password(in_one_line(PQerrorMessage(connection_.get())))), "08006",
                may_have_run);
}

void ServerConnection::finish_request(Deadline deadline) {
  const auto late = [&] {
    usable_ = false;
    return Failure(Cause::timed_out, "PostgreSQL: no answer in time", {}, true);
  };
  for (int unsent = PQflush(connection_.get()); unsent != 0; unsent = PQflush(connection_.get())) {
    if (unsent < 0) broken(true);
    if (!wait(POLLIN | POLLOUT, deadline)) throw late();
    if (PQconsumeInput(connection_.get()) == 0) broken(true);
  }
  // The commit of the statement is a result of its own, after the rows: the first bad one counts.
  std::optional<Failure> failure;
  for (;;) {
    while (PQisBusy(connection_.get()) != 0) {
      if (!wait(POLLIN, deadline)) throw late();
      if (PQconsumeInput(connection_.get()) == 0) broken(true);
    }
    const Result result(PQgetResult(connection_.get()));
    if (!result) break;
    const auto status = PQresultStatus(result.get());
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_EMPTY_QUERY) {
      read(result.get());
      continue;
    }
    if (failure) continue;
    const char* sqlstate = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
    const char* text = PQresultErrorField(result.get(), PG_DIAG_MESSAGE_PRIMARY);
    if (sqlstate == nullptr) failure.emplace(Cause::disconnected, "PostgreSQL: " + in_one_line(PQresultErrorMessage(result.get())), "08006", true);
    else failure.emplace(failure_of(sqlstate, text == nullptr ? "" : text, user_, true));
  }
  if (PQstatus(connection_.get()) == CONNECTION_BAD) usable_ = false;
  if (!failure) return;
  if (failure->cause() == Cause::disconnected || failure->cause() == Cause::stale_statement) usable_ = false;
  throw Failure(std::move(*failure));
}

void ServerConnection::read(PGresult* result) {
  if (changes_rows(PQcmdStatus(result))) {
    const std::string_view tuples = PQcmdTuples(result);
    std::from_chars(tuples.data(), tuples.data() + tuples.size(), answer_.affected);
  }
  const int rows = PQntuples(result), columns = PQnfields(result);
  if (PQresultStatus(result) != PGRES_TUPLES_OK) return;
  const auto affected = answer_.affected;
  answer_.reset(static_cast<std::size_t>(columns));
  answer_.affected = affected;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      Field& field = answer_.next();
      if (PQgetisnull(result, row, column) != 0) {
        field = nullptr;
        continue;
      }
      const std::string_view text(PQgetvalue(result, row, column), static_cast<std::size_t>(PQgetlength(result, row, column)));
      const auto type = PQftype(result, column);
      if (type == int8_type || type == int4_type || type == int2_type) {
        std::int64_t number = 0;
        std::from_chars(text.data(), text.data() + text.size(), number);
        field = number;
      } else if (auto* kept = std::get_if<std::string>(&field)) {
        kept->assign(text);
      } else {
        field.emplace<std::string>(text);
      }
    }
  }
}

const std::string& ServerConnection::prepared(const Statement& statement, Deadline deadline) {
  const auto found = prepared_.find(statement.sql);
  if (found != prepared_.end()) return found->second;
  auto name = fmt::format("{}_{}", prefix_, prepared_.size());
  if (PQsendPrepare(connection_.get(), name.c_str(), statement.sql.c_str(), 0, nullptr) == 0) broken(false);
  finish_request(deadline);
  return prepared_.emplace(statement.sql, std::move(name)).first->second;
}

// Sends the statement with values_ as its arguments.
void ServerConnection::execute(const Statement& statement, Deadline deadline) {
  const auto count = static_cast<int>(values_.size());
  int sent = 0;
  if (prepare_) {
    const auto& name = prepared(statement, deadline);
    sent = PQsendQueryPrepared(connection_.get(), name.c_str(), count, values_.data(), nullptr, nullptr, 0);
  } else {
    sent = PQsendQueryParams(connection_.get(), statement.sql.c_str(), count, nullptr, values_.data(), nullptr, nullptr, 0);
  }
  if (sent == 0) broken(false);
  answer_.reset(0);
  finish_request(deadline);
}

const Answer& ServerConnection::run(const Statement& statement, std::span<const Argument> arguments, Deadline deadline) {
  texts_.resize(std::max(texts_.size(), arguments.size()));
  values_.clear();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto& text = texts_[i];
    if (const auto* words = std::get_if<std::string_view>(&arguments[i])) {
      text.assign(*words);
      values_.push_back(text.c_str());
    } else if (const auto* number = std::get_if<std::int64_t>(&arguments[i])) {
      text.clear();
      fmt::format_to(std::back_inserter(text), "{}", *number);
      values_.push_back(text.c_str());
    } else {
      values_.push_back(nullptr);
    }
  }
  execute(statement, deadline);
  return answer_;
}

const Answer& ServerConnection::run_rows(const Statement& statement, std::span<const Argument> rows, std::size_t columns,
                                         Deadline deadline) {
  texts_.resize(std::max(texts_.size(), columns));
  values_.clear();
  for (std::size_t column = 0; column < columns; ++column) {
    auto& literal = texts_[column];
    literal.clear();
    for (std::size_t at = column; at < rows.size(); at += columns) append_element(literal, rows[at]);
    literal += literal.empty() ? "{}" : "}";
    values_.push_back(literal.c_str());
  }
  execute(statement, deadline);
  return answer_;
}

void ServerConnection::script(std::string_view sql, Deadline deadline) {
  answer_.reset(0);
  if (PQsendQuery(connection_.get(), std::string(sql).c_str()) == 0) broken(false);
  finish_request(deadline);
}

std::string ServerConnection::default_schema(Deadline deadline) {
  script("SELECT current_schema()", deadline);
  return answer_.rows() == 0 ? std::string{} : answer_.text(0, 0);
}

std::vector<std::string> ServerConnection::weaknesses(Deadline deadline) {
  script("SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')",
         deadline);
  std::vector<std::string> found;
  if (answer_.text(0, 0) != "on")
    found.emplace_back("fsync is off: after a crash of the machine the database may be damaged and grants forgotten");
  if (answer_.text(0, 1) != "on")
    found.emplace_back("full_page_writes is off: a crash of the machine can damage the lock table");
  if (answer_.text(0, 2) == "off")
    found.emplace_back("synchronous_commit is off: a grant acknowledged before a crash can be forgotten, and granted a "
                       "second time");
  return found;
}

std::string ServerConnection::server() const {
  const char* version = PQparameterStatus(connection_.get(), "server_version");
  std::string text = version == nullptr ? "" : version;
  return "PostgreSQL " + text.substr(0, text.find(' '));
}

}  // namespace dlock::dialects::DLOCK_DIALECT
