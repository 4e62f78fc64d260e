// The lock table of a real database.
#pragma once

#include "dialects/dialect.hpp"
#include "store/lock_table.hpp"

#include <memory>

namespace dlock::store {

struct TableOptions {
  std::string schema{};  // empty: the connection's default
  std::string table = "resource_lock";
  std::string history_table{};  // empty: <table>_schema_history
  unsigned connections = 2;
  unsigned combine = 64;  // at most so many acquires, or releases, in one statement; 1: each alone
  Duration connect_timeout = std::chrono::seconds{10};
  bool history = false;  // a history of the locks has to be there
  std::string engine{};  // the first 16 characters of the actor in all its grants; empty: it never notifies
};

// Connects once, finds out the names in use, and checks that the table is there, complete and of a version this
// library can work with. Throws Failure.
std::unique_ptr<LockTable> open_lock_table(const dialects::Dialect& dialect,
                                           std::unique_ptr<dialects::Connector> connector, const TableOptions& options);

}  // namespace dlock::store
