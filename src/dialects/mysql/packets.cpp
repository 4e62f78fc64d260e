// Requests that are several statements, or several packets: what of them is committed when one fails, and how it is
// known that the server has dropped the rest of one.
#include "broken_pipe.hpp"
#include "connection.hpp"
#include "literals.hpp"
#include "types/mutant.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <numeric>
#include <string>
#include <vector>

namespace dlock::dialects::mysql {
namespace {

constexpr std::size_t longest_list = 2'000'000;  // in bytes
// Of silence in the middle of a text, until it is looked into for the first time, which takes a connection: longer than
// MariaDB waits for a lock.
constexpr std::chrono::milliseconds long_silence{1500};
constexpr std::chrono::milliseconds longest_look{1000}, longest_way{300};  // of an answer that is under way
// What follows it is for rows of which nothing was said before it.
constexpr std::string_view second_mark = "/*absent*/";

// The rows in the order of their last argument, a number; they are copied only where that changes something.
std::span<const Argument> by_last(std::span<const Argument> rows, std::size_t columns, std::vector<Argument>& copy) {
  const auto last = [&](std::size_t row) { return std::get<std::int64_t>(rows[row * columns + columns - 1]); };
  std::vector<std::size_t> order(rows.size() / columns);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto earlier = [&](std::size_t one, std::size_t other) { return last(one) < last(other); };
  if (std::is_sorted(order.begin(), order.end(), earlier)) return rows;
  std::stable_sort(order.begin(), order.end(), earlier);
  copy.reserve(rows.size());
  for (const auto row : order) {
    const auto arguments = rows.subspan(row * columns, columns);
    copy.insert(copy.end(), arguments.begin(), arguments.end());
  }
  return copy;
}

// The statement for rows in that order, once for each value of that argument.
std::string with_lists(const Statement& statement, std::span<const Argument> rows, std::size_t columns) {
  std::string sql;
  for (std::size_t at = 0, end = 0; at < rows.size(); at = end) {
    for (end = at; end < rows.size() && rows[end + columns - 1] == rows[at + columns - 1];) end += columns;
    if (at > 0) sql += ';';
    const auto text = with_literals(statement, rows.subspan(at, columns), append_literal);
    sql += with_rows(text, rows.subspan(at, end - at), columns, columns - 1);
  }
  return sql;
}

// Whether the server's name for the other end of this socket is this one, as far as can be told: an address and its
// port, or "localhost" where it leads to no other machine.
bool is_other_end(int socket, std::string_view host) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length) != 0) return false;
  switch (own.ss_family) {
    case AF_UNIX: return host == "localhost";
    case AF_INET: return host.ends_with(fmt::format(":{}", ntohs(reinterpret_cast<const sockaddr_in&>(own).sin_port)));
    case AF_INET6:
      return host.ends_with(fmt::format(":{}", ntohs(reinterpret_cast<const sockaddr_in6&>(own).sin6_port)));
    default: return false;
  }
}

// Who is killed, or out of time, behind the packet's commit is told only that; nor does what has `answered`
// before tell.
[[noreturn]] void throw_from_packet(const Failure& failure, bool answered) {
  if (failure.cause() != Cause::timed_out && !answered) throw Failure(failure);
  throw Failure(failure.cause(), failure.what(), failure.code(), true);
}

std::string text_of(const StatementOfRows& what) {
  return with_rows(what.statement.sql, what.rows, what.columns, what.columns);
}

}  // namespace

// A statement that is killed (KILL QUERY) when it has just answered ends the text behind it, too, and nobody is told:
// the session sits there, with what the text has locked. Who waits for an answer then would wait for all of their time,
// and with them everybody who needs those rows.
int ServerConnection::next_result(const Deadline& deadline) {
  int result = 0, status = mysql_next_result_start(&result, connection_);
  BootClock::duration silence = long_silence;
  auto look = later(BootClock::now(), silence);
  bool dropped = false;
  while (status != 0) {
    const int happened = wait(status, deadline.no_later_than(look));
    if (happened >= 0) {
      status = mysql_next_result_cont(&result, connection_, happened);
      dropped = false;
      look = later(BootClock::now(), silence);
      continue;
    }
    if (dropped || deadline.passed()) {
      usable_ = false;
      throw Failure(Cause::timed_out,
                    dropped ? "MySQL: a statement was killed, and what was to follow it was never run"
                            : "MySQL: no answer in time",
                    {}, true);
    }
    const auto asked = BootClock::now();
    dropped = rest_is_dropped(deadline.share(2));
    silence *= 2;
    const auto now = BootClock::now();
    look = later(now, dropped ? std::max<BootClock::duration>(longest_way, 2 * (now - asked)) : silence);
  }
  return result;
}

// As the server tells another connection, of which a process makes one at a time: nothing is run there. Where that
// leads elsewhere, it is not known. MariaDB says "Killed" until the session is asked something.
bool ServerConnection::rest_is_dropped(const Deadline& deadline) noexcept {
  static std::atomic<bool> looking{false};
  if (planted("rest_awaited") || looking.exchange(true)) return false;
  bool idle = false;
  try {
    const auto by = deadline.no_later_than(later(BootClock::now(), longest_look));
    ServerConnection second(server_, {false, false}, by);
    const auto& answer =
        second.ask(fmt::format("SELECT HOST FROM information_schema.processlist WHERE ID = {} AND COMMAND IN ('Sleep', "
                               "'Killed') AND INFO IS NULL AND CONNECTION_ID() = {}",
                               mysql_thread_id(connection_), mysql_thread_id(second.connection_)),
                   by);
    idle = answer.rows() == 1 && is_other_end(mysql_get_socket(connection_), answer.text(0, 0));
  } catch (const std::exception&) {}
  looking = false;
  return idle;
}

Answer ServerConnection::run_rows_once(const Statement& statement, std::span<const Argument> rows, std::size_t columns,
                                       Deadline deadline) {
  // The text has the list a few times. Each piece of it is a packet of its own, well below the limit.
  const auto piece = std::min(longest_list, largest_packet_ / 4);
  Answer whole;
  whole.reset(2);
  // An argument that stands outside of the list is the last of each row.
  const bool apart = !statement.markers.empty();
  std::vector<Argument> sorted;
  if (apart) rows = by_last(rows, columns, sorted);
  const std::string_view text = statement.sql;
  const auto second = std::min(text.find(second_mark), text.size());
  const std::string_view parts[] = {text.substr(0, second), text.substr(second)};
  bool done = false;
  for (std::size_t at = 0, end = 0; at < rows.size(); at = end) {
    end = end_of_piece(rows, columns, at, piece);
    const auto some = rows.subspan(at, end - at);
    for (const auto part : parts) {
      if (part.empty() || (part.data() != text.data() && answer_.rows() == (end - at) / columns)) continue;
      const auto sql = apart ? with_lists(statement, some, columns) : with_rows(part, some, columns, columns);
      query_locking(with_settings(statement, sql), !statement.hinted("at_once"), done, deadline);
      done = done || committed_;
    }
    for (std::size_t row = 0; row < answer_.rows(); ++row) {
      whole.next() = answer_.text(row, 0);
      whole.next() = answer_.integer(row, 1);
    }
    whole.affected += answer_.affected;
  }
  return whole;
}

void ServerConnection::query_locking(std::string sql, bool skips, bool before, Deadline deadline) {
  if (skips && prepare_ && mariadb_)
    sql = "SET SESSION innodb_lock_wait_timeout = 1;" + sql + ";SET SESSION innodb_lock_wait_timeout = 0";
  try {
    query(sql, deadline);
  } catch (const Failure& failure) {
    const bool done = answer_.columns() > 0 || committed_;
    usable_ &= !skips && !done && failure.cause() == Cause::locked;  // else something may be left open in the session
    // No floor row, or KILL QUERY: asked for alone, each is told which (run_once).
    if (failure.code() == "1690") throw Failure(Cause::locked, failure.what(), failure.code(), done || before);
    throw_from_packet(failure, done || before);
  }
}

// MySQL cannot keep from waiting. In a cluster what was read before the COMMIT proves nothing; and through a pooler
// each statement would need settings of its own.
std::optional<AnswerOfCommit> ServerConnection::run_in_one_commit(const StatementOfRows& first,
                                                                  const StatementOfRows& second, Deadline deadline) {
  if (!mariadb_ || !prepare_ || in_cluster()) return std::nullopt;
  const BrokenPipeGuard guard(encrypted_);
  check_sendable(deadline);
  const auto sql = "START TRANSACTION;" + text_of(first) + ";" + text_of(second) + ";COMMIT";
  if (sql.size() > std::min(longest_list, largest_packet_ / 2))
    throw Failure(Cause::rejected, "MariaDB: this is too long for one text, and nothing was asked");
  try {
    query(sql, deadline);
  } catch (const Failure& failure) {
    const bool done = committed_;
    try {
      if (usable_) query("ROLLBACK", deadline);
    } catch (const Failure&) { usable_ = false; }
    throw_from_packet(failure, done);
  }
  if (changed_.size() != 4)  // of START TRANSACTION, the two, and COMMIT
    throw Failure(Cause::disconnected, "MariaDB: a request of four statements has another number of answers", {}, true);
  return AnswerOfCommit{answer_, changed_[2]};
}

// One statement, and what is read of it behind that.
void ServerConnection::run_text(const std::string& sql, Deadline deadline) {
  try {
    query(sql, deadline);
  } catch (const Failure& failure) {
    if (!committed_) throw;
    throw Failure(failure.cause(), failure.what(), failure.code(), true);
  }
}

// Several statements that begin and end a transaction. Where one fails, what came before it must not stay open.
void ServerConnection::run_packet(const std::string& sql, Deadline deadline) {
  const std::string impatient = prepare_ && mariadb_ ? ";SET SESSION innodb_lock_wait_timeout = 0" : "";
  try {
    query((impatient.empty() ? "" : "SET SESSION innodb_lock_wait_timeout = 1;") + sql + impatient, deadline);
  } catch (const Failure& failure) {
    const bool done = committed_;
    try {
      if (usable_) query("ROLLBACK" + impatient, deadline);
    } catch (const Failure&) { usable_ = false; }
    // Its wait for a row is over.
    if ((failure.code() == "1969" || failure.code() == "3024") && !done)
      throw Failure(Cause::locked, failure.what(), failure.code());
    throw_from_packet(failure, done);
  }
}

}  // namespace dlock::dialects::mysql
