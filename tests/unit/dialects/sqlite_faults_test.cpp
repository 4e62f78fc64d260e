// What each of SQLite's result codes must become.
#include "faults.hpp"

#include <doctest/doctest.h>
#include <sqlite3.h>

#include <string>
#include <utility>
#include <vector>

using namespace dlock;
using dlock::dialects::sqlite::busy;
using dlock::dialects::sqlite::failure_of;

TEST_CASE("every code of the table has its cause, an extended one that of its primary, and all others are rejected") {
  const std::pair<Cause, std::vector<int>> expected[] = {
      {Cause::locked,
       {SQLITE_BUSY, SQLITE_BUSY_RECOVERY, SQLITE_BUSY_TIMEOUT, SQLITE_LOCKED, SQLITE_LOCKED_SHAREDCACHE,
        SQLITE_PROTOCOL}},
      {Cause::serialization, {SQLITE_BUSY_SNAPSHOT}},
      {Cause::timed_out, {SQLITE_INTERRUPT}},
      {Cause::disconnected, {SQLITE_READONLY_DBMOVED, SQLITE_IOERR, SQLITE_IOERR_FSYNC, SQLITE_IOERR_WRITE}},
      {Cause::permission, {SQLITE_READONLY, SQLITE_READONLY_DIRECTORY, SQLITE_PERM, SQLITE_AUTH}},
      {Cause::read_only, {SQLITE_FULL, SQLITE_IOERR_SHMSIZE, SQLITE_NOMEM}},
      {Cause::refused, {SQLITE_CANTOPEN}},
      {Cause::rejected,
       {SQLITE_NOTADB, SQLITE_CORRUPT, SQLITE_CONSTRAINT, SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_TOOBIG, SQLITE_ERROR}},
      {Cause::stale_statement, {SQLITE_SCHEMA}},
      {Cause::schema, {SQLITE_CONSTRAINT_NOTNULL}},
  };
  for (const auto& [cause, codes] : expected)
    for (const int code : codes) {
      const auto failure = failure_of(nullptr, code, "/tmp/app.db");
      CHECK_MESSAGE(failure.cause() == cause, code);
      CHECK(failure.code().starts_with("SQLITE_"));
      CHECK(std::string(failure.what()).find("/tmp/app.db") != std::string::npos);
      // A write that could not be stored may be there all the same, after the next recovery; so may one that was, and
      // could not be entered in the log's index.
      const bool stored = code == SQLITE_IOERR_SHMSIZE || code == SQLITE_NOMEM;
      CHECK(failure.may_have_run() == (cause == Cause::disconnected || stored));
    }
}

TEST_CASE("what is busy passes, but not a snapshot that is too old") {
  CHECK(busy(SQLITE_BUSY));
  CHECK(busy(SQLITE_BUSY_RECOVERY));
  CHECK(busy(SQLITE_LOCKED));
  CHECK(busy(SQLITE_PROTOCOL));
  CHECK_FALSE(busy(SQLITE_BUSY_SNAPSHOT));
  CHECK_FALSE(busy(SQLITE_FULL));
}
