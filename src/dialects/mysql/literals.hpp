// This file knows how arguments are written into the text of a statement where they cannot be bound: as hexadecimal
// digits and plain numbers, which need no quotes, so that nothing can break out of them.
#pragma once

#include "dialects/statement.hpp"
#include "types/row.hpp"

#include <span>
#include <string>
#include <string_view>

namespace dlock::dialects::DLOCK_DIALECT {

// Text is utf8mb4, as a bound one would be.
void append_literal(std::string& sql, const Argument& argument);

// Tuples of the first `listed` of `columns` arguments each, from `at` on, until the list has `size` bytes or more; `at`
// is moved past them. Text is bytes here.
std::string tuples(std::span<const Argument> rows, std::size_t columns, std::size_t listed, std::size_t size,
                   std::size_t& at);

// The text with the list wherever it says /*rows*/.
std::string with_rows(std::string_view sql, const std::string& list);

}  // namespace dlock::dialects::DLOCK_DIALECT
