// How a statement can fail, in words that no database uses: the dialects translate into them, the engine decides what
// to do. And which of these causes may pass by themselves.
#pragma once

#include <stdexcept>
#include <string>

namespace dlock {

enum class Cause {
  refused,          // no connection could be made (not there, starting up, shutting down, too many); nothing was sent
  disconnected,     // the connection broke; see may_have_run
  timed_out,        // the deadline passed; see may_have_run
  locked,           // the row (on SQLite: the file) is locked by another transaction
  deadlock,         // this statement was chosen to break a deadlock of transactions
  serialization,    // the database could not order this transaction among the others
  read_only,        // the server does not take writes now (a standby, a failover under way, a full disk)
  schema,           // a table, view or column is missing, or is not what it must be
  permission,       // the role lacks a right; the text names it
  stale_statement,  // a prepared statement is not known on this connection (a pooler in between); nothing ran
  rejected,         // the arguments, the set-up or the statement are wrong; asking again cannot help
};

// May pass by itself: who knows, or need not know, whether the statement was carried out asks again.
constexpr bool is_transient(Cause cause) noexcept {
  switch (cause) {
    case Cause::refused:
    case Cause::disconnected:
    case Cause::timed_out:
    case Cause::locked:
    case Cause::deadlock:
    case Cause::serialization:
    case Cause::read_only:
    case Cause::stale_statement: return true;
    case Cause::schema:
    case Cause::permission:
    case Cause::rejected: return false;
  }
  return false;
}

// Likewise, and the statement was undone: also what must not be done twice is asked again after these.
constexpr bool is_conflict(Cause cause) noexcept {
  return cause == Cause::locked || cause == Cause::deadlock || cause == Cause::serialization;
}

// One failed statement or connection.
class Failure : public std::runtime_error {
 public:
  // `text` is for people, with the vendor's words in it and never a password or an owner; `code` is the database's own.
  // `may_have_run`: the statement was sent and no answer says what became of it.
  Failure(Cause cause, const std::string& text, std::string code = {}, bool may_have_run = false)
      : std::runtime_error(text), cause_(cause), code_(std::move(code)), may_have_run_(may_have_run) {}

  Cause cause() const noexcept { return cause_; }
  const std::string& code() const noexcept { return code_; }
  bool may_have_run() const noexcept { return may_have_run_; }

 private:
  Cause cause_;
  std::string code_;
  bool may_have_run_;
};

}  // namespace dlock
