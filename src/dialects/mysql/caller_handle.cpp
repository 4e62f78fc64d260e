// How a caller's connection is asked, what is left unread on it, and when it is rather ended than used.
#include "caller_handle.hpp"

#include "broken_pipe.hpp"
#include "faults.hpp"
#include "types/failure.hpp"
#include "types/mutant.hpp"
#include "types/owner.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>

namespace dlock::dialects::mysql {
namespace {

constexpr const char* unread = "a result is left to read on the connection that was handed over; read it first";

[[noreturn]] void fail(MYSQL* connection) {
  const char* user = connection->user;
  throw failure_of(mysql_errno(connection), mysql_error(connection), user == nullptr ? "" : user, true);
}

unsigned status_of(MYSQL* connection) {
  unsigned status = 0;
  mariadb_get_infov(connection, MARIADB_CONNECTION_SERVER_STATUS, &status);
  return status;
}

bool is_read(MYSQL* connection) {
  return connection->status == MYSQL_STATUS_READY && mysql_more_results(connection) == 0;
}

}  // namespace

TextRow ask(MYSQL* connection, std::string_view sql) {
  const BrokenPipeGuard guard(mysql_get_ssl_cipher(connection) != nullptr);
  if (mysql_real_query(connection, sql.data(), sql.size()) != 0) fail(connection);
  const std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)> result(mysql_store_result(connection),
                                                                        &mysql_free_result);
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

bool is_alive(MYSQL* connection) noexcept { return connection->net.pvio != nullptr; }

bool in_transaction(MYSQL* connection) { return (status_of(connection) & SERVER_STATUS_IN_TRANS) != 0; }

bool commits_by_itself(MYSQL* connection) { return (status_of(connection) & SERVER_STATUS_AUTOCOMMIT) != 0; }

void end(MYSQL* connection) noexcept {
  mariadb_cancel(connection);
  try {
    ask(connection, "DO 1");
  } catch (...) {  // as it should
  }
}

// Whatever is told: behind a session that ends nothing is stored any more.
static void check_stays(MYSQL* connection) {
  if (connection->options.reconnect == 0 || planted("reconnect_ignored")) return;
  const my_bool no = 0;
  mysql_options(connection, MYSQL_OPT_RECONNECT, &no);
  throw Failure(
      Cause::rejected,
      "the connection that was handed over would begin a new session by itself (MYSQL_OPT_RECONNECT), in which "
      "what follows is stored without the transaction; that is switched off now: roll back");
}

void check_ready(MYSQL* connection) {
  check_stays(connection);
  if (!is_alive(connection) && !planted("dead_connection_trusted"))
    throw NothingToSpoil(Cause::disconnected, "MySQL: the connection that was handed over is broken");
  check_read(connection);
}

bool owes_perhaps(MYSQL* connection) { return is_alive(connection) && connection->net.pkt_nr <= 1; }

void check_in_step(MYSQL* connection) {
  const auto asked = random_identity();
  try {
    const auto row = ask(connection, fmt::format("SELECT '{}' LIMIT 1", asked));  // whatever sql_select_limit says
    if (!row.empty() && row.front() == asked) return;
  } catch (const Failure& failure) {  // that of something else, or there is no connection
    if (!is_alive(connection) || failure.cause() == Cause::disconnected) throw;
  }
  end(connection);
  throw NothingToSpoil(Cause::rejected, unread);
}

void check_read(MYSQL* connection) {
  if (!is_alive(connection)) return;
  if (!is_read(connection)) throw NothingToSpoil(Cause::rejected, unread);
  if (owes_perhaps(connection) && !planted("answers_out_of_step")) check_in_step(connection);
}

void drain(MYSQL* connection) noexcept {
  if (planted("unread_in_the_way")) return;
  while (is_alive(connection)) {
    if (connection->status == MYSQL_STATUS_GET_RESULT) mysql_free_result(mysql_use_result(connection));
    else if (connection->status != MYSQL_STATUS_READY || mysql_more_results(connection) == 0 ||
             mysql_next_result(connection) != 0)
      break;
  }
  if (is_alive(connection) && !is_read(connection)) end(connection);
}

void clear_the_way(MYSQL* connection) noexcept {
  drain(connection);
  try {
    check_read(connection);
  } catch (...) {  // it is ended
  }
}

}  // namespace dlock::dialects::mysql
