// What may be asked in a caller's transaction on MySQL and MariaDB, where a statement that fails can take the whole
// transaction with it: how it is bound, ended, and kept from being committed. Whether it is one: caller_session.cpp.
#include "caller_connection.hpp"

#include "caller_handle.hpp"
#include "faults.hpp"
#include "literals.hpp"
#include "types/clock.hpp"
#include "types/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <thread>
#include <utility>

namespace dlock::dialects::mysql {
namespace {

// Between two looks at how far a server of a cluster has come.
constexpr std::chrono::milliseconds first_pause{1}, longest_pause{20};

// Such settings take whole seconds.
std::int64_t seconds(Duration duration) {
  constexpr Duration longest = std::chrono::hours{24} * 365;
  return std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(std::min(duration, longest)).count());
}

}  // namespace

TransactionConnection::TransactionConnection(MYSQL* connection, const QuotedTable& table)
    : CallerConnection([connection](std::string_view sql) { return ask(connection, sql); }),
      connection_(connection),
      table_(table) {}

bool TransactionConnection::is_mariadb() {
  if (!mariadb_ && connection_ != nullptr) mariadb_ = mariadb_connection(connection_) != 0;
  if (!mariadb_) {
    const auto row = run(fmt::format("SELECT VERSION(), CONNECTION_ID(), {}", server_place));
    if (row.size() < 3) throw Failure(Cause::rejected, too_little);
    mariadb_ = row[0].value_or("").find("MariaDB") != std::string::npos;
    session_ = fmt::format("{} {}", row[1].value_or(""), row[2].value_or(""));
  }
  return *mariadb_;
}

TextRow TransactionConnection::run_waiting(std::string_view sql, Duration wait) {
  return run(is_mariadb() ? fmt::format("SET STATEMENT innodb_lock_wait_timeout={0}, lock_wait_timeout={0} FOR {1}",
                                        seconds(wait), sql)
                          : std::string(sql));
}

// A session of MariaDB that never waits cannot skip locked rows: error 1180, and it undoes what the transaction wrote.
// One that waits for a locked table does so for a day.
TextRow TransactionConnection::attempt(std::string_view sql, std::optional<Duration>) {
  return run(is_mariadb() ? fmt::format("SET STATEMENT innodb_lock_wait_timeout=1, lock_wait_timeout=0 FOR {}", sql)
                          : std::string(sql));
}

bool TransactionConnection::fence(std::string_view sql, Duration wait, std::optional<Duration> idle_bound) {
  if (idle_bound) bound_idle(*idle_bound);
  const auto row = run_waiting(sql, wait);
  if (row.empty() || (row.front() != "1" && row.front() != "2")) return false;  // 2: a gate and its holder
  // A session that has begun anew since it was asked has committed the fence at once.
  if (connection_ != nullptr && !in_transaction(connection_)) throw Failure(Cause::rejected, no_transaction);
  if (!mark().empty()) run("SAVEPOINT " + mark());
  return true;
}

// Equal: the table of that name is the same one, as long as both are on this server. Else it may still be, on another
// server of its cluster.
std::optional<bool> TransactionConnection::is_at(std::string_view other) {
  if (!place_) place_ = one(fmt::format("SELECT {}", server_place));
  return *place_ == other ? std::optional(true) : std::nullopt;
}

// A read that locks takes no snapshot.
std::optional<TextRow> TransactionConnection::look(std::string_view sql) {
  return run_waiting(fmt::format("{} LOCK IN SHARE MODE", sql), std::chrono::seconds{1});
}

bool TransactionConnection::lacks_table() noexcept {
  try {
    run(fmt::format("DESCRIBE {}.{}", table_.schema, table_.lock));
    return false;
  } catch (...) { return answers(); }
}

std::string TransactionConnection::where() noexcept {
  try {
    return one("SELECT CONCAT(@@hostname, ':', @@port, '/', COALESCE(DATABASE(), ''))");
  } catch (...) { return "a server that does not answer"; }
}

// Nothing is read of a table, so that the transaction has no snapshot yet that would be too old; and nothing is locked,
// since what arrives from another server ends whatever transaction has it locked. Inside of a transaction Galera does
// not wait by itself, whatever wsrep_sync_wait says.
bool TransactionConnection::catch_up(std::string_view position, Duration wait) {
  if (position.find(':') != std::string_view::npos) {
    std::string set;
    append_literal(set, Argument{position});
    return one(fmt::format("SELECT WAIT_FOR_EXECUTED_GTID_SET({}, {})", set, seconds(wait))) == "0";
  }
  std::int64_t wanted = 0;
  std::from_chars(position.data(), position.data() + position.size(), wanted);
  const auto end = later(BootClock::now(), wait);
  for (auto pause = first_pause;; pause = std::min(2 * pause, longest_pause)) {
    const auto row = run("SHOW GLOBAL STATUS LIKE 'wsrep_last_committed'");
    if (row.size() < 2) return false;
    std::int64_t here = 0;
    const std::string text = row[1].value_or("");
    std::from_chars(text.data(), text.data() + text.size(), here);
    if (here >= wanted) return true;
    if (BootClock::now() >= end) return false;
    std::this_thread::sleep_for(pause);
  }
}

// There is no such setting of a transaction, only of the session: it is made where it can be taken back.
void TransactionConnection::bound_idle(Duration bound) {
  if (mark().empty() || !is_mariadb()) return;
  // As it was at the beginning, for the first fence.
  auto row = std::exchange(idle_settings_, {});
  if (row.size() < 2) row = run(fmt::format("SELECT {}", idle_settings));
  if (row.size() < 2) throw Failure(Cause::rejected, too_little);
  if (number_in(row[1]) <= seconds(bound)) return;
  // Before it is sent: its answer may be lost.
  if (!idle_before_ || planted("idle_bound_remembered")) idle_before_ = number_in(row[0]);
  idle_bounds_.push_back(seconds(bound));
  run(fmt::format("SET SESSION idle_write_transaction_timeout = {}", seconds(bound)));
}

// Unless the work has set it, or the session is another one by now.
std::string TransactionConnection::idle_as_before() const {
  constexpr std::string_view setting = "@@SESSION.idle_write_transaction_timeout";
  return fmt::format("SET {0} = IF({0} IN ({1}), {2}, {0})", setting, fmt::join(idle_bounds_, ", "), *idle_before_);
}

// No table is read, so that there is no snapshot.
Duration TransactionConnection::keep_alive() {
  // The comment is a part of the statement to MariaDB alone, which may be behind something that calls itself MySQL.
  const auto shown =
      one("SELECT LEAST(@@wait_timeout, @@wait_timeout /*M! ,"
          " COALESCE(NULLIF(@@idle_transaction_timeout, 0), @@wait_timeout),"
          " COALESCE(NULLIF(@@idle_readonly_transaction_timeout, 0), @@wait_timeout),"
          " COALESCE(NULLIF(@@idle_write_transaction_timeout, 0), @@wait_timeout) */)");
  return std::chrono::seconds{std::max<std::int64_t>(1, number_in(shown))};
}

// Takes the setting back and ends the transaction, in one statement: behind its end the session may be another one (a
// pooler's), and in front of it the bound must hold for as long as the client can stop.
void TransactionConnection::end_with(std::string_view how) {
  if (!idle_before_ || planted("idle_bound_left")) {
    run(fmt::format("{} AND NO CHAIN NO RELEASE", how));  // whatever completion_type says
    return;
  }
  run(fmt::format("BEGIN NOT ATOMIC {}; {} AND NO CHAIN NO RELEASE; END", idle_as_before(), how));
  idle_before_.reset();
  idle_bounds_.clear();
}

// The connection goes, and the transaction with it. Killing oneself needs no right.
void TransactionConnection::doom(const EndSession& end_session) noexcept {
  try {
    run("KILL CONNECTION_ID()");
  } catch (...) {  // 1927, as it should be
  }
  // Unless something in between does not let it through.
  if (answers()) return spoil(end_session);
  if (connection_ != nullptr) return end(connection_);
  if (!session_.empty()) try {
      end_session(session_);
    } catch (...) {  // it cannot be reached, or is over
    }
  spoil(end_session);  // where that was not to be had
}

// Until the caller's own ROLLBACK an empty transaction stands in the place of this one, in which nothing can be
// written. Somebody may interrupt one of the statements, and go on with that.
void TransactionConnection::spoil(const EndSession& end_session) noexcept {
  for (int i = 0; i < most_attempts; ++i) try {
      run("ROLLBACK AND NO CHAIN NO RELEASE");
      run("START TRANSACTION READ ONLY");
      return;
    } catch (...) {
      if (planted("spoiled_once")) return;
    }
  try {
    run("KILL CONNECTION_ID()");
  } catch (...) {}
  if (connection_ != nullptr) return end(connection_);
  if (!session_.empty()) try {
      end_session(session_);
    } catch (...) {  // as above
    }
}

void TransactionConnection::begin(Duration) {
  if (connection_ != nullptr) {
    check_ready(connection_);
    // What has failed has not said whether a transaction is open.
    if (mysql_errno(connection_) != 0) run("DO 1");
  }
  // Beginning one would commit another that is open.
  if (connection_ != nullptr ? in_transaction(connection_) : keeps_its_kind())
    throw Failure(Cause::rejected, open_already);
  begin_with("START TRANSACTION");
  try {
    check_begun();
  } catch (...) {
    roll_back();
    throw;
  }
}

// Behind the fence there is a savepoint that only the fenced transaction has. After a deadlock the server has rolled
// everything back, and a commit would say nothing of it.
void TransactionConnection::commit() {
  if (connection_ != nullptr) check_read(connection_);
  try {
    run("RELEASE SAVEPOINT " + mark());
  } catch (const Failure& failure) {
    // No commit has been sent.
    if (failure.cause() != Cause::rejected) throw Failure(failure.cause(), failure.what(), failure.code());
    throw Failure(Cause::rejected, ended_early);
  } catch (...) {
    const auto why = std::current_exception();
    if (is_released_after(why) || !answers()) std::rethrow_exception(why);
    throw Failure(Cause::rejected, ended_early);
  }
  if (connection_ != nullptr && !in_transaction(connection_)) throw Failure(Cause::rejected, ended_early);
  try {
    end_with("COMMIT");
  } catch (const Failure& failure) {
    // Who is killed, or runs out of time, while the commit is under way is told so after it has succeeded, too.
    if (failure.cause() != Cause::timed_out) throw;
    throw Failure(failure.cause(), failure.what(), failure.code(), true);
  }
}

// The savepoint behind the fence could not be released. Whether the server has not refused that: it can be released
// after all, or something else is said.
bool TransactionConnection::is_released_after(const std::exception_ptr& first) {
  const auto told = text_of(first);
  for (int i = 0; i < most_attempts; ++i) {
    const auto again = thrown_by([&] { run("RELEASE SAVEPOINT " + mark()); });
    if (again == nullptr || text_of(again) != told) return true;
  }
  return false;
}

// Whether what was just rolled back, here or by the server, has written tables that know no transactions: warning 1196.
// MariaDB gives it for temporary tables too that were made or dropped, and counts those.
bool TransactionConnection::leaves_something() {
  // Behind those of the statement that lost a deadlock; of many some are not kept.
  constexpr int most = 32;
  if (planted("left_on_trust")) return false;
  for (int i = 0; i < most; ++i) {
    const auto warning = run(fmt::format("SHOW WARNINGS LIMIT {}, 1", i));
    if (warning.size() < 2) return false;
    if (warning[1] == "1196")
      return run("SHOW SESSION STATUS WHERE Value <> '0' AND Variable_name IN ('Com_create_temporary_table', "
                 "'Com_drop_temporary_table')")
          .empty();
  }
  return true;
}

// After a deadlock, and where a row has changed since the snapshot, the server undoes the whole transaction.
bool TransactionConnection::was_undone() {
  const auto error = run("SHOW ERRORS LIMIT 1");
  const auto code = error.size() > 1 ? error[1].value_or("") : std::string{};
  unsigned number = 0;
  std::from_chars(code.data(), code.data() + code.size(), number);
  const auto cause = mysql::failure_of(number, {}, {}, false).cause();
  return cause == Cause::deadlock || cause == Cause::serialization;
}

TransactionConnection::Undone TransactionConnection::undo() noexcept {
  if (connection_ != nullptr) drain(connection_);
  // Nothing else may be sent before, and the answer is to be believed if that of the next statement is the right one.
  const bool doubtful = connection_ != nullptr && owes_perhaps(connection_);
  bool undone = false;
  try {
    undone = was_undone() && !leaves_something();
  } catch (...) {  // it cannot tell
  }
  try {
    if (doubtful) check_in_step(connection_);
  } catch (...) { return Undone::unknown; }
  try {
    run("ROLLBACK TO SAVEPOINT " + mark());
    return leaves_something() ? Undone::unknown : Undone::to_the_fence;
  } catch (...) {
    if (!undone || (connection_ != nullptr && in_transaction(connection_))) return Undone::unknown;
    return Undone::by_the_database;
  }
}

bool TransactionConnection::roll_back() noexcept {
  if (connection_ != nullptr) clear_the_way(connection_);
  try {
    end_with("ROLLBACK");
    return true;
  } catch (...) {  // who was killed in the middle of it may try again, or the runner takes no such statement
  }
  try {
    if (idle_before_) run(idle_as_before());
  } catch (...) {}
  try {
    run("ROLLBACK AND NO CHAIN NO RELEASE");
    return true;
  } catch (...) {  // without its connection the transaction is over, too
    return connection_ != nullptr && !is_alive(connection_);
  }
}

}  // namespace dlock::dialects::mysql
