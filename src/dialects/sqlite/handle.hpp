// Who frees what SQLite's C interface hands out.
#pragma once

#include <sqlite3.h>

#include <memory>

namespace dlock::dialects::sqlite {

struct Close {
  void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using Handle = std::unique_ptr<sqlite3, Close>;
using Prepared = std::unique_ptr<sqlite3_stmt, Finalize>;

// Ends one use of a statement, whatever became of it: one left half way would hold the file's lock.
class StatementUse {
 public:
  explicit StatementUse(sqlite3_stmt* statement) noexcept : statement_(statement) {}
  // What was bound is not used again: every use binds all there is to bind, before the first step.
  ~StatementUse() { sqlite3_reset(statement_); }
  StatementUse(const StatementUse&) = delete;
  StatementUse& operator=(const StatementUse&) = delete;

 private:
  sqlite3_stmt* statement_;
};

}  // namespace dlock::dialects::sqlite
