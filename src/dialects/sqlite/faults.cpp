// Which code of SQLite is which cause (https://www.sqlite.org/rescode.html), and what a person is advised.
#include "faults.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cerrno>
#include <string_view>

namespace dlock::dialects::sqlite {
namespace {

constexpr const char* write_permission =
    "this user needs permission to read and write the file and its folder; in WAL mode who only looks needs it too";

struct ResultCodeCause {
  int code;  // extended or primary; the first match from the top counts
  const char* name;
  Cause cause;
  const char* advice;
};

constexpr ResultCodeCause table[] = {
    {SQLITE_BUSY_SNAPSHOT, "SQLITE_BUSY_SNAPSHOT", Cause::serialization, ""},
    {SQLITE_BUSY, "SQLITE_BUSY", Cause::locked, "another connection is writing"},
    {SQLITE_LOCKED, "SQLITE_LOCKED", Cause::locked, "another connection of this process is writing"},
    {SQLITE_PROTOCOL, "SQLITE_PROTOCOL", Cause::locked, "others opened and closed it all the time"},
    {SQLITE_INTERRUPT, "SQLITE_INTERRUPT", Cause::timed_out, "the time for this request was over"},
    {SQLITE_READONLY_DBMOVED, "SQLITE_READONLY_DBMOVED", Cause::disconnected,
     "the file was moved, replaced or removed"},
    {SQLITE_READONLY, "SQLITE_READONLY", Cause::permission, write_permission},
    {SQLITE_PERM, "SQLITE_PERM", Cause::permission, write_permission},
    {SQLITE_AUTH, "SQLITE_AUTH", Cause::permission, ""},
    {SQLITE_FULL, "SQLITE_FULL", Cause::read_only, "there is no room to write"},
    {SQLITE_IOERR_SHMSIZE, "SQLITE_IOERR_SHMSIZE", Cause::read_only, "there is no room to write"},
    {SQLITE_IOERR, "SQLITE_IOERR", Cause::disconnected, ""},
    {SQLITE_NOMEM, "SQLITE_NOMEM", Cause::read_only, ""},
    {SQLITE_CANTOPEN, "SQLITE_CANTOPEN", Cause::refused, ""},
    {SQLITE_NOTADB, "SQLITE_NOTADB", Cause::rejected,
     "the file is something else, or encrypted; name another one in the URL"},
    {SQLITE_CORRUPT, "SQLITE_CORRUPT", Cause::rejected, "the file is damaged; restore it"},
    {SQLITE_SCHEMA, "SQLITE_SCHEMA", Cause::stale_statement, ""},
    {SQLITE_CONSTRAINT_NOTNULL, "SQLITE_CONSTRAINT_NOTNULL", Cause::schema,
     "the floor row of the lock table is missing: run \"dlock-migrate repair\""},
    {SQLITE_CONSTRAINT, "SQLITE_CONSTRAINT", Cause::rejected, ""},
};

// SQLITE_ERROR says what is wrong in its text only.
constexpr const char* wrong_tables[] = {"no such table", "no such column", "has no column named", "no such view",
                                        "no such index"};

Failure failure(Cause cause, const std::string& path, std::string_view text, std::string_view advice,
                std::string code) {
  auto what = fmt::format("SQLite, {}: {}", path, text);
  if (!advice.empty()) what += fmt::format(" ({})", advice);
  // A write whose pages could not all be stored may be there after the next recovery all the same; so may one that is
  // in the log, and for which there was no room in the log's index.
  const bool stored = cause == Cause::disconnected || code == "SQLITE_IOERR_SHMSIZE" || code == "SQLITE_NOMEM";
  return {cause, what, std::move(code), stored};
}

}  // namespace

bool busy(int code) noexcept {
  const int primary = code & 0xFF;
  return (primary == SQLITE_BUSY && code != SQLITE_BUSY_SNAPSHOT) || primary == SQLITE_LOCKED ||
         primary == SQLITE_PROTOCOL;
}

Failure failure_of(sqlite3* db, int code, const std::string& path) {
  const std::string text = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  const int extended = db != nullptr ? sqlite3_extended_errcode(db) : code;
  const int system = db != nullptr ? sqlite3_system_errno(db) : 0;
  for (const auto& row : table) {
    if (row.code != extended && row.code != (extended & 0xFF)) continue;
    auto name = row.code == extended ? std::string(row.name) : fmt::format("{} ({})", row.name, extended);
    if (row.cause == Cause::refused && (system == EACCES || system == EPERM || system == EROFS))
      return failure(Cause::permission, path, text, write_permission, std::move(name));
    return failure(row.cause, path, text, row.advice, std::move(name));
  }
  for (const std::string_view words : wrong_tables)
    if (text.find(words) != std::string::npos)
      return failure(Cause::schema, path, text, "run \"dlock-migrate check\"", "SQLITE_ERROR");
  return failure(Cause::rejected, path, text, "", fmt::format("SQLITE_ERROR ({})", extended));
}

}  // namespace dlock::dialects::sqlite
