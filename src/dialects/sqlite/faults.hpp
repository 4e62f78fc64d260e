// SQLite's result codes have causes.
#pragma once

#include "types/failure.hpp"

#include <string>

struct sqlite3;

namespace dlock::dialects::sqlite {

// The failure behind the last call on `db` (null: none could be made), which returned `code`. `path` is the file.
Failure failure_of(sqlite3* db, int code, const std::string& path);

// Whether the file was busy, which passes.
bool busy(int code) noexcept;

}  // namespace dlock::dialects::sqlite
