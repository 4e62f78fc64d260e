// This file knows how arguments are written into the text of a statement where they cannot be bound: as hexadecimal
// digits and plain numbers, which need no quotes, so that nothing can break out of them.
#pragma once

#include "dialects/statement.hpp"
#include "types/row.hpp"

#include <span>
#include <string>

namespace dlock::dialects::DLOCK_DIALECT {

// The statement's text with every marker replaced by its argument. Text is utf8mb4, as a bound one would be.
std::string with_literals(const Statement& statement, std::span<const Argument> arguments);

// Tuples of `columns` arguments each, from `at` on, until the list has `size` bytes or more; `at` is moved past them.
// Text is bytes here.
std::string tuples(std::span<const Argument> rows, std::size_t columns, std::size_t size, std::size_t& at);

// The statement's text with the list wherever it says /*rows*/.
std::string with_rows(const Statement& statement, const std::string& list);

}  // namespace dlock::dialects::DLOCK_DIALECT
