// What can be done on a connection that belongs to a caller, inside the transaction open on it.
#pragma once

#include "types/failure.hpp"
#include "types/mutant.hpp"
#include "types/owner.hpp"

#include <dlock/duration.hpp>

#include <fmt/format.h>

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::dialects {

// The first row of a result, as text; NULL is an empty optional, and a result without rows an empty row. A statement
// without a result answers one field: the number of rows it changed.
using TextRow = std::vector<std::optional<std::string>>;

// Runs one statement on the caller's connection and reads its result to the end. A native one throws Failure; what a
// caller's own throws goes through.
using Send = std::function<TextRow(std::string_view sql)>;

// Ends a session of the server that the lock table is on, from a connection of the engine's own: `session` is what the
// CallerConnection has called it. Throws Failure.
using EndSession = std::function<void(std::string_view session)>;

// The caller's connection leads to another database than the engine's own ones: what() says to which, as far as it is
// known.
class OtherDatabase : public Failure {
 public:
  explicit OtherDatabase(const std::string& which) : Failure(Cause::rejected, which) {}
};

// Nothing can be asked on the caller's connection, or no transaction is open on it: there is none to be spoiled.
class NothingToSpoil : public Failure {
 public:
  using Failure::Failure;
  explicit NothingToSpoil(std::exception_ptr thrown) : Failure(Cause::rejected, ""), thrown_(std::move(thrown)) {}

  // What the caller's own runner has thrown is to be thrown in its place.
  [[noreturn]] void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
    throw NothingToSpoil(*this);
  }

 private:
  std::exception_ptr thrown_{};
};

// So often a statement that must be run is sent, since somebody may interrupt it (a cancel, KILL QUERY, a time-out).
inline constexpr int most_attempts = 3;

// The lock table's name, in two quoted parts.
struct QuotedTable {
  std::string schema, lock;
};

// What a caller is told, whatever its database.
inline constexpr const char* no_transaction =
    "no transaction is open on the connection that was handed over; begin one first";
inline constexpr const char* open_already = "a transaction is open already on the connection that was handed over";
inline constexpr const char* ended_early =
    "the transaction had ended before its commit: the work, or a statement in it that commits by itself, has ended it; "
    "what was committed is stored, and nothing is run again";

// Threads: the caller's. Owns: nothing. Whatever happens, the caller's transaction is not committed here, is not left,
// and its connection keeps its settings, unless a member says otherwise.
// Fails: members throw Failure. There are no deadlines: the connection waits as its owner has set it up to.
class CallerConnection {
 public:
  explicit CallerConnection(Send send) : send_(std::move(send)) {}
  virtual ~CallerConnection() = default;

  // Throws NothingToSpoil unless a transaction is open in which statements can be run, and Failure{rejected} where
  // nothing that is proved in it could be relied on.
  virtual void check() = 0;

  TextRow run(std::string_view sql) { return send_(sql); }

  // Runs a statement that locks a row if it can be had at once, and answers no row if not. What such an attempt has
  // locked in vain is let go of, where the database can do that. Throws Failure{locked}, with the transaction as
  // it was, where the table as a whole cannot be had at once. `idle_bound`: with the row, the transaction is bound to
  // it (see below).
  virtual TextRow attempt(std::string_view sql, std::optional<Duration> idle_bound) = 0;
  // The same for a query that locks no row: what it has locked of the table is let go of as well, where the database
  // can do that.
  virtual TextRow attempt_to_read(std::string_view sql) { return attempt(sql, std::nullopt); }

  // Runs the fence, waiting at most about `wait` for its row, and binds the transaction to `idle_bound` before it has
  // that. False: refused. Throws OtherDatabase where the answer says so.
  virtual bool fence(std::string_view sql, Duration wait, std::optional<Duration> idle_bound) = 0;

  // Waits, at most about `wait`, until this server of a cluster has come as far as that (Connection::position). False:
  // it has not, or nobody can tell.
  virtual bool catch_up(std::string_view /*position*/, Duration /*wait*/) { return true; }

  // Whether this is the database that says `place` of itself (the statement "installation"). Empty: its tables must be
  // asked, and an attempt asks them (see asks_by_itself). Reads no table.
  virtual std::optional<bool> is_at(std::string_view place) = 0;
  // Whether the statement of an attempt names the installation, so that it can do nothing in another one.
  virtual bool asks_by_itself() const = 0;
  // Runs a SELECT in such a way that what the transaction reads later is as fresh as without it. Empty optional: here
  // that is impossible. Throws OtherDatabase where there is no such table and a runner's own failure would not say so,
  // and Cause::locked where another session has locked all of the table.
  virtual std::optional<TextRow> look(std::string_view sql) = 0;
  // Whether the database behind the connection has no lock table of that name, or none that its user may know of. False
  // also where that cannot be told.
  virtual bool lacks_table() noexcept = 0;
  // Which database it is, for people.
  virtual std::string where() noexcept = 0;

  // Whether the transaction cannot see rows that were made after its snapshot. Not where what locks sees all that is
  // committed, nor where a snapshot that has grown old cannot write at all.
  virtual bool blind_to_new_rows() { return false; }

  // Whether a lease that is taken here counts by a clock that the session may have stopped.
  virtual bool counts_by_own_clock() { return false; }

  // Whether an attempt in vain may have left its row locked, or a snapshot behind which later ones fail: then nobody is
  // waited for after it.
  virtual bool tries_once() { return false; }

  // Whether the transaction, as it stands, keeps everybody else from writing.
  virtual bool writes_alone() { return false; }

  // An idle bound is how long its client can be silent before the server ends the transaction; there is none where that
  // cannot be said for the transaction alone, and a shorter one of the caller's stays. This sends something that takes
  // no snapshot and changes nothing, so that the bound begins again, also one that the caller's session has; and
  // answers what it is. max(): there is none.
  virtual Duration keep_alive() { return Duration::max(); }

  // After a fence that was refused, nothing that was done in the transaction can be committed, whatever the caller
  // does.
  virtual void doom(const EndSession& end_session) noexcept = 0;
  // The same after a fence that failed otherwise; the connection goes only where there is no other way.
  virtual void spoil(const EndSession& end_session) noexcept = 0;

  // For transactions that are begun and ended here.
  virtual void begin(Duration wait) = 0;
  // Throws Failure{rejected}, and commits nothing, if what is open now is not the transaction that was fenced here;
  // with may_have_run() nobody knows.
  virtual void commit() = 0;
  // Undoes all that was done since the fence. By the database: nothing is open, and the database says that it has just
  // undone a transaction of its own accord, this one or one that was begun after it. Unknown: somebody ended it, or
  // nobody can tell.
  enum class Undone { to_the_fence, by_the_database, unknown };
  virtual Undone undo() noexcept = 0;
  // Ends whatever is open. False: nobody knows whether it did.
  virtual bool roll_back() noexcept = 0;

 protected:
  // The first field of a result; empty where there is none.
  std::string one(std::string_view sql) {
    const auto row = run(sql);
    return row.empty() ? std::string{} : row.front().value_or("");
  }
  bool succeeds(std::string_view sql) noexcept {
    try {
      run(sql);
      return true;
    } catch (...) { return false; }
  }
  // What `attempt` throws; null: nothing.
  template <class Attempt>
  static std::exception_ptr thrown_by(Attempt attempt) noexcept {
    try {
      attempt();
      return nullptr;
    } catch (...) { return std::current_exception(); }
  }
  // Its words; empty where it is no std::exception.
  static std::string text_of(const std::exception_ptr& thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) { return error.what(); } catch (...) {
      return {};
    }
  }
  // Nothing is open, and `first` was thrown by something that works in a transaction alone. If it says the same when it
  // is tried once more, the server has refused it for that; else it was the runner's own, which goes through.
  template <class Attempt>
  [[noreturn]] static void throw_nothing_open(const std::exception_ptr& first, Attempt attempt) {
    const auto again = thrown_by(attempt);
    const auto told = text_of(first);
    if (again != nullptr && !told.empty() && text_of(again) == told)
      throw NothingToSpoil(Cause::rejected, no_transaction);
    throw NothingToSpoil(first);
  }
  // Begins a transaction where none is open. One whose beginning has lost its answer is not left open.
  void begin_with(std::string_view sql) {
    begun();
    try {
      run(sql);
    } catch (...) {
      if (!planted("begin_left_open")) roll_back();
      throw;
    }
  }
  void begun() {
    static thread_local unsigned count = 0;
    mark_ = fmt::format("{}_{}", savepoint("fence"), count++ % 8);  // another one for what begins within another
  }
  // The savepoint behind the fence of a transaction that was begun here; empty: it was not.
  const std::string& mark() const noexcept { return mark_; }
  // A name that no caller's savepoint has. There are few of them: servers keep statistics by statement, and of a
  // statement that makes a savepoint its name is a part.
  static std::string savepoint(std::string_view purpose) {
    static const auto process = random_identity();
    return fmt::format("dlock_{}_{}", purpose, process);
  }

 private:
  const Send send_;
  std::string mark_{};
};

}  // namespace dlock::dialects
