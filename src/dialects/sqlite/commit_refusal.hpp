// Makes one transaction of somebody else's connection impossible to commit.
#pragma once

struct sqlite3;

namespace dlock::dialects::sqlite {

// From here on the commit of the transaction that is open fails and rolls it back, whatever savepoints it goes back to,
// and none after it. The connection keeps its hooks. False: it could not be done.
bool refuse_commit(sqlite3* database) noexcept;

// The same where no statement can be run (an authorizer, a limit, an interrupt stand in its way): the connection loses
// its own commit and rollback hooks. SQLite asks no hook where nothing was written: then it is the next transaction
// that is refused. Where nothing is `open`, what is written without a transaction is refused, until one that writes has
// ended.
void refuse_commit_by_hook(sqlite3* database, bool open) noexcept;

}  // namespace dlock::dialects::sqlite
