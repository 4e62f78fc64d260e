// How the rows that the reaper asks for read, and are named in turn.
#pragma once

#include "store/lock_table.hpp"
#include "types/row.hpp"

#include <span>
#include <vector>

namespace dlock::store {

// From the columns of the statements "idle" and "idle_row".
std::vector<Idle> idle_rows(const Answer& answer);

// For the statement "remove_idle", three a row.
std::vector<Argument> arguments_of(std::span<const Idle> rows);

// From the columns of the statement "abandoned".
std::vector<Abandoned> abandoned_rows(const Answer& answer);

}  // namespace dlock::store
