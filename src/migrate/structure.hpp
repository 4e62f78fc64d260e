// How two descriptions of the tables are compared, and how a difference is told.
#pragma once

#include "dialects/statement.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace dlock::migrate {

// A description is a list of lines in order:
//
//   lock: table                          what "lock", "waiter", "holder" and "status" (the view) are
//   lock.token: bigint, not null         a column of one
//   lock: PRIMARY KEY (name)             what else it has
//   lock: identity in the floor row      likewise; in these words on every database
//
// Each dialect has words of its own behind the colon; nothing here understands them.

inline constexpr std::string_view identity_line = "lock: identity in the floor row";

// The lines of a file: without comments (#) and empty lines, in order.
std::vector<std::string> structure_of(std::string_view text);

// One sentence for each thing that is not as expected, with the tables' names.
std::vector<std::string> differences(const std::vector<std::string>& expected, const std::vector<std::string>& found,
                                     const dialects::TableNames& names);

}  // namespace dlock::migrate
