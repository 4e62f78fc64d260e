// What must be true before a file is opened as a database, and what is set up once it is.
#pragma once

#include "file.hpp"
#include "handle.hpp"
#include "patience.hpp"

#include <string>

namespace dlock::dialects::sqlite {

// Opens the file; makes it only if `create`. Nothing is written to a file that is there. Throws Failure.
Handle open_file(const File& file, bool create, BusyPatience& patience);

// Puts the file into WAL mode, where readers and the writer do not stop each other; it stays so for everybody. What
// cannot be in that mode (a file system without shared memory) is left as it is. Throws Failure.
void make_wal(sqlite3* db, const File& file, BusyPatience& patience);

// The first column of the first row as text; empty without one. Throws Failure.
std::string look_up(sqlite3* db, const char* sql, const std::string& path);

}  // namespace dlock::dialects::sqlite
