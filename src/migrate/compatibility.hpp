// What must be true of the tables before an engine may use them.
#pragma once

#include "dialects/dialect.hpp"
#include "dialects/statement.hpp"
#include "types/clock.hpp"

namespace dlock::migrate {

// Reads, and needs nothing but SELECT on the lock table and its history. Throws Failure{schema} naming the command to
// run if the table is missing, older than this library, too new for it, half migrated, of another shape, or without
// its floor row and the identity in that. A table without a history (made from "dlock-migrate sql --no-history") is
// accepted if its columns and its floor row are there. `names.schema` must not be empty unless the database has none.
void check_compatible(dialects::Connection& connection, const dialects::Dialect& dialect,
                      const dialects::TableNames& names, Deadline deadline);

}  // namespace dlock::migrate
