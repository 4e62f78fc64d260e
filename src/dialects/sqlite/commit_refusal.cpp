// Refuses a commit by a virtual table: one that was created in a transaction takes part in its end, and can say no.
// A commit hook can say no as well, and needs no statement; but a connection has one only, which belongs to its owner
// and may be set anew: it is the last resort.
#include "commit_refusal.hpp"

#include "types/annotated_mutex.hpp"
#include "types/owner.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <map>
#include <string>

namespace dlock::dialects::sqlite {
namespace {

// Nobody else has a table of that name, in whose place there would be no refusal.
const std::string& name() {
  static const std::string name = "dlock_unfenced_" + random_identity();
  return name;
}

int create(sqlite3* database, void*, int, const char* const*, sqlite3_vtab** table, char**) {
  if (const int code = sqlite3_declare_vtab(database, "CREATE /* what nobody reads */ TABLE x (n)"); code != SQLITE_OK)
    return code;
  *table = static_cast<sqlite3_vtab*>(sqlite3_malloc(sizeof(sqlite3_vtab)));
  if (*table == nullptr) return SQLITE_NOMEM;
  **table = {};
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  sqlite3_free(table->zErrMsg);
  sqlite3_free(table);
  return SQLITE_OK;
}

int refuse(sqlite3_vtab* table) {
  sqlite3_free(table->zErrMsg);
  table->zErrMsg = sqlite3_mprintf("dlock: the transaction was not fenced; roll it back");
  return SQLITE_ABORT;
}

int nothing_to_read(sqlite3_vtab*, sqlite3_index_info*) { return SQLITE_ERROR; }
int never_opened(sqlite3_vtab*, sqlite3_vtab_cursor**) { return SQLITE_ERROR; }
int ended(sqlite3_vtab*) { return SQLITE_OK; }

sqlite3_module module_of_refusal() {
  sqlite3_module module{};
  module.iVersion = 1;  // without savepoints, which change nothing
  module.xCreate = module.xConnect = &create;
  module.xBestIndex = &nothing_to_read;
  module.xDisconnect = &disconnect;
  module.xDestroy = &refuse;  // nobody drops it
  module.xOpen = &never_opened;
  module.xBegin = &ended;
  module.xSync = &refuse;
  module.xCommit = module.xRollback = &ended;
  return module;
}

// Whether a statement that writes is what commits: outside of a transaction.
bool commits_by_itself(sqlite3* database) noexcept {
  for (auto* one = sqlite3_next_stmt(database, nullptr); one != nullptr; one = sqlite3_next_stmt(database, one))
    if (sqlite3_stmt_busy(one) != 0 && sqlite3_stmt_readonly(one) == 0) return true;
  return false;
}

// Connections whose commit is refused by a hook. In a callback its connection must not be changed: the hooks stay.
class RefusedCommits {
 public:
  void add(sqlite3* database, bool open) {
    const MutexLock lock(mutex_);
    all_.insert_or_assign(database, open);
  }
  // Asked in the hooks. What is refused is rolled back, while the connection says that nothing is open.
  bool commit(sqlite3* database) {
    const MutexLock lock(mutex_);
    const auto found = all_.find(database);
    if (found == all_.end()) return true;
    const bool refused = found->second || commits_by_itself(database);
    if (found->second || !refused) all_.erase(found);
    return !refused;
  }
  void roll_back(sqlite3* database) {
    const MutexLock lock(mutex_);
    const auto found = all_.find(database);
    if (found != all_.end() && (found->second || sqlite3_get_autocommit(database) == 0)) all_.erase(found);
  }

 private:
  mutable AnnotatedMutex mutex_;
  std::map<sqlite3*, bool> all_ GUARDED_BY(mutex_);  // and whether that is the one that is open
};

RefusedCommits& refused() {
  static RefusedCommits* const all = new RefusedCommits;  // what ends late may still commit
  return *all;
}

}  // namespace

bool refuse_commit(sqlite3* database) noexcept {
  static const sqlite3_module module = module_of_refusal();
  try {
    if (sqlite3_create_module(database, name().c_str(), &module, nullptr) != SQLITE_OK) return false;
    // Made in memory of the connection alone, and gone with the transaction.
    const auto sql = fmt::format("CREATE VIRTUAL TABLE IF NOT EXISTS temp.{0} USING {0}", name());
    return sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  } catch (...) { return false; }
}

void refuse_commit_by_hook(sqlite3* database, bool open) noexcept {
  // Until it is noted whose, whoever it is.
  sqlite3_commit_hook(
      database, [](void*) { return 1; }, nullptr);
  try {
    refused().add(database, open);
  } catch (...) { return; }
  sqlite3_commit_hook(
      database, [](void* which) { return refused().commit(static_cast<sqlite3*>(which)) ? 0 : 1; }, database);
  sqlite3_rollback_hook(
      database, [](void* which) { refused().roll_back(static_cast<sqlite3*>(which)); }, database);
}

}  // namespace dlock::dialects::sqlite
