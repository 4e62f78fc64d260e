// The tables that clients transfer money in: accounts, transfers, and a till for each lock.
#pragma once

#include "fault/suite/checker.hpp"
#include "support/test_database.hpp"

#include <string>
#include <vector>

namespace dlock::test {

// Makes the tables, with accounts that have money.
void open_bank(const TestDatabase& test_database, const std::vector<std::string>& names);

// What they say, and the lock table's tokens. Throws std::exception.
Books read_books(const TestDatabase& test_database, const std::vector<std::string>& names);

}  // namespace dlock::test
