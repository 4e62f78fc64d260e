// What may be asked in a caller's transaction on PostgreSQL without leaving a trace in its session: how its state is
// told, what runs behind a savepoint, how it is bound, ended, and kept from being committed.
#include "caller_connection.hpp"

#include "caller_handle.hpp"
#include "faults.hpp"
#include "handle.hpp"
#include "literals.hpp"
#include "standby.hpp"
#include "types/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <utility>

namespace dlock::dialects::postgresql {
namespace {

// invalid_text_representation: how the fence's statement fails when the lease is not the caller's any more.
constexpr std::string_view refused_code = "22P02";
constexpr std::string_view refused_text = "dlock: lease lost";
constexpr std::string_view other_text = "dlock: another database, ";
// There is no savepoint of that name.
constexpr std::string_view no_savepoint_code = "3B001";

constexpr std::string_view idle_setting = "idle_in_transaction_session_timeout";

// When the transaction began.
constexpr const char* begun_at = "SELECT pg_catalog.now()::text";

constexpr const char* failed_already = "the transaction that was handed over has failed; roll it back first";
constexpr const char* in_pipeline =
    "the connection that was handed over is in pipeline mode, in which no answer is waited for; leave it first";
constexpr const char* under_way =
    "a statement is under way on the connection that was handed over; read its results first";
constexpr const char* broken = "PostgreSQL: the connection that was handed over is broken";

std::string literal_of(std::string_view text) {
  std::string sql;
  append_literal(sql, Argument{text});
  return sql;
}

// What the text of an error says of a fence, whoever passes it on. Throws OtherDatabase.
bool says_refused(std::string_view text) {
  if (const auto at = text.find(other_text); at != std::string_view::npos) {
    const auto which = text.substr(at + other_text.size());
    throw OtherDatabase(std::string(which.substr(0, which.find('"'))));
  }
  return text.find(refused_text) != std::string_view::npos;
}

std::int64_t milliseconds(Duration duration) {
  constexpr Duration longest = std::chrono::hours{24} * 20;  // the settings are 32-bit
  return std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::milliseconds>(std::min(duration, longest)).count());
}

// The statement that binds the transaction, unless it is bound by less.
std::string bounds_idle(Duration bound) {
  return fmt::format(
      "SELECT set_config('{0}', '{1}ms', true) WHERE current_setting('{0}')::interval = '0' "
      "OR current_setting('{0}')::interval > '{1}ms'",
      idle_setting, milliseconds(bound));
}

}  // namespace

TransactionConnection::TransactionConnection(PGconn* connection, const QuotedTable& table)
    : TransactionConnection([connection](std::string_view sql) { return ask(connection, sql); }, table) {
  connection_ = connection;
}

TransactionConnection::TransactionConnection(Send send, const QuotedTable& table)
    : CallerConnection(std::move(send)),
      table_(literal_of(table.schema + "." + table.lock)),
      lock_table_(fmt::format("LOCK TABLE {}.{} IN ROW EXCLUSIVE MODE NOWAIT", table.schema, table.lock)),
      read_lock_(fmt::format("LOCK TABLE {}.{} IN ACCESS SHARE MODE NOWAIT", table.schema, table.lock)) {}

// Outside of a transaction a savepoint is an error, and the connection is as good as before. What fails is no proof:
// two statements that do not fail, and began at different times, are in none.
void TransactionConnection::check_runner() {
  const auto prove = [&] {
    run("SAVEPOINT " + savepoint("check"));
    run("RELEASE SAVEPOINT " + savepoint("check"));
  };
  const auto first = thrown_by(prove);
  if (first == nullptr) return;
  if (is_open_by_time() == false || planted("failure_taken_for_none")) throw_nothing_open(first, prove);
  std::rethrow_exception(first);
}

// Empty: the transaction has failed, or nobody answers.
std::optional<bool> TransactionConnection::is_open_by_time() {
  std::optional<bool> open;
  for (int i = 0; i < 2 * most_attempts && !open; ++i) thrown_by([&] { open = one(begun_at) == one(begun_at); });
  return open;
}

void TransactionConnection::check() {
  if (connection_ == nullptr) return check_runner();
  if (PQpipelineStatus(connection_) != PQ_PIPELINE_OFF) throw NothingToSpoil(Cause::rejected, in_pipeline);
  switch (PQtransactionStatus(connection_)) {
    case PQTRANS_INTRANS: return;
    case PQTRANS_IDLE: throw NothingToSpoil(Cause::rejected, no_transaction);
    case PQTRANS_INERROR: throw Failure(Cause::rejected, failed_already);
    case PQTRANS_ACTIVE: throw NothingToSpoil(Cause::rejected, under_way);
    case PQTRANS_UNKNOWN: break;
  }
  throw NothingToSpoil(Cause::disconnected, broken);
}

// A row can be locked in vain: when it was changed after the statement's snapshot, and cannot be had any more. Only the
// end of a savepoint lets go of it, and of the table.
TextRow TransactionConnection::in_savepoint(std::initializer_list<std::string_view> first, std::string_view sql,
                                            bool keep) {
  const auto name = savepoint("attempt");
  const auto begin = "SAVEPOINT " + name, release = "RELEASE SAVEPOINT " + name, back = "ROLLBACK TO SAVEPOINT " + name;
  const auto undo = [&] {
    if (connection_ != nullptr) {
      run(fmt::format("{};{}", back, release));
    } else {
      run(back);
      run(release);
    }
  };
  if (connection_ != nullptr && PQtransactionStatus(connection_) == PQTRANS_INERROR)
    throw Failure(Cause::rejected, failed_already);
  if (connection_ == nullptr) run(begin);
  TextRow row;
  bool locked = false;
  try {
    if (connection_ != nullptr) run(fmt::format("{};{}", begin, fmt::join(first, ";")));
    else
      for (const auto statement : first) run(statement);
    row = run(sql);
  } catch (...) {
    const auto why = std::current_exception();
    try {
      throw;
    } catch (const Failure& failure) { locked = failure.cause() == Cause::locked; } catch (...) {
    }
    try {
      undo();
    } catch (...) {  // the connection is broken, and not busy
      if (locked) throw;
    }
    std::rethrow_exception(why);
  }
  if (row.empty() || !keep) undo();
  else run(release);
  return row;
}

// A locked table would be waited for, for as long as the caller's session has it, and holding the row.
TextRow TransactionConnection::attempt(std::string_view sql, std::optional<Duration> idle_bound) {
  if (!idle_bound) return in_savepoint({lock_table_}, sql, true);
  // It takes the transaction's snapshot, where it has one: as late as can be.
  const auto bound = bounds_idle(*idle_bound);
  if (connection_ == nullptr) return in_savepoint({lock_table_, bound}, sql, true);
  return in_savepoint({lock_table_}, fmt::format("{};{}", bound, sql), true);
}

TextRow TransactionConnection::attempt_to_read(std::string_view sql) { return in_savepoint({lock_table_}, sql, false); }

// With a runner it is also asked, in the same statement, what cannot be asked any more once the fence has failed: which
// session and which database this is, and whether there is a lock table in it.
std::string TransactionConnection::lock_timeout() {
  if (connection_ != nullptr) return one("SHOW lock_timeout");
  const auto row =
      run(fmt::format("SELECT current_setting('lock_timeout'), pg_backend_pid(), "
                      "(extract(epoch FROM pg_catalog.pg_postmaster_start_time()) * 1000000)::bigint, "
                      "current_database(), (to_regclass({}) IS NULL)::int",
                      table_));
  if (row.size() < 5) throw Failure(Cause::rejected, "the runner that was handed over answers less than was asked");
  session_ = fmt::format("{} {}", row[1].value_or(""), row[2].value_or(""));
  database_ = row[3].value_or("");
  if (row[4] == "1") throw OtherDatabase(fmt::format("{}, which has no such table", where()));
  return row[0].value_or("");
}

bool TransactionConnection::fence(std::string_view sql, Duration wait, std::optional<Duration> idle_bound) {
  const std::string_view set = planted("lock_timeout_for_good") ? "SET" : "SET LOCAL";
  const auto before = fmt::format("{} lock_timeout = '{}ms'", set, milliseconds(wait));
  const auto right = fmt::format("{} lock_timeout = '{}'", set, lock_timeout());
  const auto& after = planted("lock_timeout_left") ? before : right;
  const auto behind = mark().empty() ? std::string{} : "SAVEPOINT " + mark();
  if (planted("fence_unbounded") && mark().empty()) idle_bound.reset();
  const auto bound = idle_bound ? bounds_idle(*idle_bound) : std::string{};
  try {
    if (connection_ != nullptr) {
      run(fmt::format("{};{};{};{};{}", before, bound, sql, after, behind));
    } else {
      if (idle_bound) run(bound);
      run(before);
      run(sql);
      run(after);
      if (!behind.empty()) run(behind);
    }
    return true;
  } catch (const Failure& failure) {
    if (failure.code() == refused_code && says_refused(failure.what())) return false;
    throw;
  } catch (const std::exception& error) {
    if (says_refused(error.what())) return false;
    throw;
  }
}

// A snapshot that is taken here would be too old for a lock that is waited for.
std::optional<TextRow> TransactionConnection::look(std::string_view sql) {
  if (blind_to_new_rows()) return std::nullopt;
  // A runner's failure would not tell, and what it has failed in cannot be asked any more.
  if (connection_ == nullptr && lacks_table()) throw OtherDatabase(fmt::format("{}, which has no such table", where()));
  return in_savepoint({read_lock_}, sql, false);
}

bool TransactionConnection::lacks_table() noexcept {
  try {
    return one(fmt::format("SELECT (to_regclass({}) IS NULL)::int", table_)) == "1";
  } catch (...) {  // the transaction has failed, or the connection is broken
    return false;
  }
}

std::string TransactionConnection::where() noexcept {
  try {
    if (connection_ != nullptr) {
      const char *name = PQdb(connection_), *host = PQhost(connection_), *port = PQport(connection_);
      return fmt::format("{} at {}:{}", name == nullptr ? "" : name, host == nullptr ? "" : host,
                         port == nullptr ? "" : port);
    }
    if (database_.empty()) database_ = one("SELECT current_database()");
    return database_;
  } catch (...) { return "a database that does not answer"; }
}

bool TransactionConnection::blind_to_new_rows() {
  const auto isolation = one("SHOW transaction_isolation");
  return isolation == "repeatable read" || isolation == "serializable";
}

// SHOW takes no snapshot, and tells a time in the largest unit that leaves no rest.
Duration TransactionConnection::keep_alive() {
  constexpr std::array<std::pair<std::string_view, Duration>, 5> units{{{"ms", std::chrono::milliseconds{1}},
                                                                        {"s", std::chrono::seconds{1}},
                                                                        {"min", std::chrono::minutes{1}},
                                                                        {"h", std::chrono::hours{1}},
                                                                        {"d", std::chrono::hours{24}}}};
  const auto shown = one(fmt::format("SHOW {}", idle_setting));
  std::int64_t count = 0;
  const auto* const end = shown.data() + shown.size();
  const auto read = std::from_chars(shown.data(), end, count);
  if (shown == "0") return Duration::max();
  for (const auto& [unit, length] : units)
    if (read.ec == std::errc{} && count > 0 && std::string_view(read.ptr, end) == unit) return count * length;
  return std::chrono::seconds{1};  // nobody can tell
}

// The statement that failed has aborted the transaction; but a savepoint from before the fence would bring it back. So
// it is rolled back, and until the caller's own ROLLBACK another one stands in its place: empty, failed, and read-only
// for drivers that take back what fails.
bool TransactionConnection::replaced() noexcept {
  constexpr std::string_view fails = "SELECT 'dlock: the transaction was not fenced; roll it back'::int";
  try {
    if (connection_ != nullptr) {
      // Somebody's cancel may come late, and end the first statement of these.
      const auto sql = fmt::format("ROLLBACK;BEGIN READ ONLY;{}", fails);
      const auto is_replaced = [&] {
        const Result result(PQexec(connection_, sql.c_str()));
        const char* code = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
        return code != nullptr && code == refused_code && PQtransactionStatus(connection_) == PQTRANS_INERROR;
      };
      for (int i = 0; i < most_attempts && PQstatus(connection_) == CONNECTION_OK; ++i)
        if (is_replaced()) return true;
      return PQstatus(connection_) != CONNECTION_OK;
    }
    for (int i = 0; i < most_attempts; ++i) {
      if (!succeeds("ROLLBACK") || !succeeds("BEGIN READ ONLY")) continue;
      succeeds(fails);  // it does not, as it should
      return true;
    }
  } catch (...) {  // out of memory
  }
  return false;
}

void TransactionConnection::doom(const EndSession& end_session) noexcept {
  if (replaced()) return;
  if (connection_ != nullptr) return end(connection_);
  if (!session_.empty()) try {
      end_session(session_);
    } catch (...) {  // it cannot be reached, and what the server has aborted stays aborted
    }
}

void TransactionConnection::spoil(const EndSession& end_session) noexcept { doom(end_session); }

void TransactionConnection::begin(Duration) {
  if (connection_ == nullptr) {
    // Two statements that began at the same time are in one transaction.
    if (one(begun_at) == one(begun_at)) throw Failure(Cause::rejected, open_already);
  } else {
    const bool alive = PQstatus(connection_) == CONNECTION_OK || planted("dead_connection_trusted");
    if (!alive) throw Failure(Cause::disconnected, broken);
    if (PQpipelineStatus(connection_) != PQ_PIPELINE_OFF) throw Failure(Cause::rejected, in_pipeline);
    if (PQtransactionStatus(connection_) != PQTRANS_IDLE) throw Failure(Cause::rejected, open_already);
  }
  begin_with("BEGIN");
}

// Behind the fence there is a savepoint that only the fenced transaction has. The commit of a failed transaction would
// be a rollback, and no error.
void TransactionConnection::commit() {
  const auto release = "RELEASE SAVEPOINT " + mark();
  if (connection_ == nullptr) {
    try {
      run(release);
    } catch (...) {
      const auto why = std::current_exception();
      // What the server refuses fails the transaction.
      const bool refused = is_open_by_time() != true;
      if (!roll_back() || !refused) std::rethrow_exception(why);
      throw Failure(Cause::rejected, ended_early);
    }
    run("COMMIT");
    return;
  }
  if (PQstatus(connection_) != CONNECTION_OK) throw Failure(Cause::disconnected, broken);
  if (PQtransactionStatus(connection_) == PQTRANS_INERROR)
    throw Failure(Cause::rejected,
                  "a statement of the transaction had failed, and the work went on; nothing of it is stored");
  if (PQpipelineStatus(connection_) != PQ_PIPELINE_OFF) throw Failure(Cause::rejected, in_pipeline);
  if (PQtransactionStatus(connection_) == PQTRANS_ACTIVE) throw Failure(Cause::rejected, under_way);
  if (PQtransactionStatus(connection_) != PQTRANS_INTRANS) throw Failure(Cause::rejected, ended_early);
  // The warning that nobody has confirmed the commit must not be silenced.
  constexpr std::string_view audible =
      "SELECT set_config('client_min_messages', 'warning', true) "
      "WHERE current_setting('client_min_messages') IN ('error', 'fatal', 'panic')";
  const StandbyWatch standby(connection_);
  try {
    run(fmt::format("{};{};COMMIT", release, audible));
  } catch (const Failure& failure) {
    if (failure.code() == no_savepoint_code) throw Failure(Cause::rejected, ended_early);
    throw;
  }
  if (standby.gave_up()) throw unconfirmed_commit();
}

// Twice, as the end of it: a cancel that was meant for a statement of the work may come late.
TransactionConnection::Undone TransactionConnection::undo() noexcept {
  if (connection_ != nullptr) clear_the_way(connection_);
  for (int i = 0; i < 2; ++i) try {
      if (connection_ != nullptr && PQtransactionStatus(connection_) == PQTRANS_IDLE) break;
      run("ROLLBACK TO SAVEPOINT " + mark());
      return Undone::to_the_fence;
    } catch (...) {  // or the savepoint is gone
    }
  return Undone::unknown;
}

bool TransactionConnection::roll_back() noexcept {
  if (connection_ != nullptr) clear_the_way(connection_);
  for (int i = 0; i < 2; ++i) try {
      if (connection_ == nullptr || PQtransactionStatus(connection_) != PQTRANS_IDLE) run("ROLLBACK");
      return true;
    } catch (...) {  // without its connection the transaction is over too
      if (connection_ != nullptr && PQstatus(connection_) != CONNECTION_OK) return true;
    }
  return false;
}

}  // namespace dlock::dialects::postgresql
