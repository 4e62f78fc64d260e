// Whether a caller's session of MySQL or MariaDB can be relied on: that a transaction is open in it, by what it says
// and by what it does, that its clock goes, and that its answers can be read.
#include "caller_connection.hpp"
#include "caller_handle.hpp"
#include "types/mutant.hpp"

#include <fmt/format.h>

#include <exception>

namespace dlock::dialects::mysql {
namespace {

// How far the clock of the session, which stands still for a statement, is behind that of the server's machine; and
// what it says.
constexpr const char* clocks = "TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)), CONCAT(@@timestamp)";
// Only outside of a transaction.
constexpr const char* set_access_mode = "SET TRANSACTION READ WRITE";
// A statement that began longer ago, or, where SYSDATE() is NOW() (--sysdate-is-now), just now, is asked once more.
constexpr std::int64_t suspicious_us = 20'000;

// As the last answer has said it. With autocommit off the next statement begins one.
bool is_open_by_itself(MYSQL* connection) { return in_transaction(connection) || !commits_by_itself(connection); }

// What a number is not in UTF-16 and the like.
void check_readable(const TextRow& row) {
  if (row.front() && row.front()->find('\0') != std::string::npos)
    throw Failure(Cause::rejected,
                  "the session that was handed over answers in a character set in which a digit is more than a byte "
                  "(character_set_results); set another one first");
}

}  // namespace

void TransactionConnection::check() {
  if (connection_ != nullptr) check_ready(connection_);
  // The comment is a statement to MariaDB alone, which can tell.
  const auto row = asked_first(
      connection_ != nullptr ? fmt::format("SELECT @@innodb_rollback_on_timeout, {}, {}", server_place, clocks)
                             : fmt::format("SELECT @@innodb_rollback_on_timeout, {}, {}, VERSION(), @@autocommit, "
                                           "0 /*M! + 2 + @@in_transaction */, CONNECTION_ID()",
                                           server_place, clocks));
  const auto field = [&](std::size_t i) { return i < row.size() ? row[i].value_or("") : std::string{}; };
  const auto is_open = [&] {
    // As this answer says it: a statement that has failed has not said that the server has undone the transaction.
    if (connection_ != nullptr) return is_open_by_itself(connection_);
    if (row.size() < 8) return proves_transaction();
    session_ = fmt::format("{} {}", field(7), field(1));
    mariadb_ = field(4).find("MariaDB") != std::string::npos;
    return field(5) == "0" || field(6) == "3" || (field(6) != "2" && proves_transaction());
  };
  if (!is_open()) throw NothingToSpoil(Cause::rejected, no_transaction);
  if (row.size() < (connection_ != nullptr ? 4U : 8U)) throw Failure(Cause::rejected, too_little);
  check_readable(row);
  if (field(0) != "0")
    throw Failure(
        Cause::rejected,
        "innodb_rollback_on_timeout is on: a wait for a lock that ends in vain would undo the whole transaction, "
        "and what follows would be stored without it; switch it off on the server");
  place_ = field(1);
  check_clock(field(2), field(3));
}

// If the very first statement fails, there is a transaction to spoil only if one was open before, as far as is known,
// or is open now: a statement that failed earlier may have begun one.
TextRow TransactionConnection::asked_first(const std::string& sql) {
  const bool open = connection_ != nullptr && is_open_by_itself(connection_);
  try {
    return run(sql);
  } catch (const Failure& failure) {
    if (open || is_open_behind_failure()) throw;
    throw NothingToSpoil(failure.cause(), failure.what(), failure.code(), failure.may_have_run());
  } catch (...) {
    const auto why = std::current_exception();
    if (is_open_behind_failure()) throw;
    throw NothingToSpoil(why);
  }
}

// One that the server has just undone counts, and so it does where nobody can tell.
bool TransactionConnection::is_open_behind_failure() noexcept {
  if (planted("failure_taken_for_open")) return true;
  bool told = false;
  for (int i = 0; i < 2 * most_attempts; ++i) try {
      if (!told && was_undone()) return true;
      told = true;
      if (connection_ == nullptr) return proves_transaction();
      run("DO 1");
      return is_open_by_itself(connection_);
    } catch (const NothingToSpoil&) { return false; } catch (...) {
      // somebody goes on interrupting, or the connection is broken
    }
  return true;
}

// By the session's clock a lease that is over would look alive, or a live one over, to whoever has set it. What stands
// still says the same in the next statement.
void TransactionConnection::check_clock(const std::string& behind, const std::string& says) {
  if (planted("session_clock_trusted")) return;
  const auto off = number_in(behind);
  if (off > 0 && off <= suspicious_us) return;
  const auto row = run(fmt::format("SELECT {}", clocks));
  if (row.size() < 2) throw Failure(Cause::rejected, too_little);
  if (row[1] == says)
    throw Failure(
        Cause::rejected,
        fmt::format("the clock of the session that was handed over stands still at {} (SET timestamp = …), and "
                    "a lease counts by it there; SET timestamp = DEFAULT first",
                    says));
}

// Outside of a transaction a savepoint is gone with its statement. MySQL prepares no such statement: a runner that
// prepares what it is given cannot make one anywhere. Where the server has undone a transaction that was begun, it
// lasts, and what comes next is a transaction as well: to tell that takes a statement that fails where one is open.
bool TransactionConnection::proves_transaction() {
  const auto prove = [&] {
    run("SAVEPOINT " + savepoint("check"));
    run("RELEASE SAVEPOINT " + savepoint("check"));
  };
  std::exception_ptr first;
  for (int i = 0; i < most_attempts; ++i) {
    const auto failed = thrown_by(prove);
    if (failed == nullptr && first) std::rethrow_exception(first);
    if (failed == nullptr) return true;
    if (!first) first = failed;
    if (succeeds(set_access_mode)) throw_nothing_open(first, prove);
  }
  if (!answers()) std::rethrow_exception(first);
  return true;
}

// An open transaction can no longer be made another kind of one.
bool TransactionConnection::keeps_its_kind() {
  std::exception_ptr first;
  for (int i = 0; i < most_attempts; ++i) {
    const auto failed = thrown_by([&] { run(set_access_mode); });
    if (failed == nullptr && first) std::rethrow_exception(first);
    if (failed == nullptr) return false;
    if (!first) first = failed;
  }
  if (!answers()) std::rethrow_exception(first);
  return true;
}

bool TransactionConnection::answers() noexcept { return succeeds("SELECT 1"); }

// In the transaction, where a proxy asks the server that the fence goes to. The comment is read by MariaDB alone.
void TransactionConnection::check_begun() {
  const auto row = run(fmt::format("SELECT {} /*M! , {} */", clocks, idle_settings));
  if (row.size() < 2) throw Failure(Cause::rejected, too_little);
  check_readable(row);
  check_clock(row[0].value_or(""), row[1].value_or(""));
  idle_settings_.assign(row.begin() + 2, row.end());
}

}  // namespace dlock::dialects::mysql
