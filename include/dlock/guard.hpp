// Guards a table of your own against writes with an old fencing token: what dlock-migrate guard does, as calls.
#pragma once

#include <dlock/export.hpp>
#include <dlock/schema.hpp>

#include <string>
#include <string_view>

namespace dlock {
inline namespace v0 {
namespace schema {

// The column, a 64-bit integer, in which each row keeps the largest fencing token it was written with. Names as the
// database spells them, without quotes, whatever characters are in them.
struct GuardedColumn {
  std::string schema{};  // of the table; empty: the connection's default
  std::string table{}, column{};
};

// What was done.
struct GuardReport {
  SchemaState state{};            // good, failed, locked or stopped
  std::string message{}, hint{};  // one sentence each; either may be empty
  std::string code{};             // the database's own, of a failed statement
  bool changed = false;           // false: it was so already
  std::string sql{};              // the statements, for the database's own client; they may be run again
};

// From make_guard() on the database refuses an UPDATE of a row that makes the column smaller, or NULL where it was not,
// whoever sends it, with "stale fencing token … for table …". Rows that are not NULL have been fenced; a row whose
// column is NULL takes any token. What an UPDATE cannot tell stays allowed: one that leaves the column as it is, and
// DELETE. Of `options` these count: timeouts, retries, `dry_run`, `stop`, `observer`. Any number of callers may do so
// at once. Threads: any. Fails: Error{unavailable, timeout, permission}, and Error{misuse} if the names cannot be those
// of a table and a column, the table or the column is not there, or the column is no 64-bit integer that can be
// written.
DLOCK_EXPORT GuardReport make_guard(std::string_view url, const GuardedColumn& column, const Options& options = {});

// Takes it away again. The column may be gone.
DLOCK_EXPORT GuardReport drop_guard(std::string_view url, const GuardedColumn& column, const Options& options = {});

// The statements of both for a database of dialects(), without a connection. Fails: Error{misuse}.
DLOCK_EXPORT std::string make_guard_sql(std::string_view dialect, const GuardedColumn& column);
DLOCK_EXPORT std::string drop_guard_sql(std::string_view dialect, const GuardedColumn& column);

}  // namespace schema
}  // namespace v0
}  // namespace dlock
