// How arguments are written into the text of a statement where they cannot be bound: as hexadecimal
// digits and plain numbers, which need no quotes, so that nothing can break out of them.
#pragma once

#include "dialects/statement.hpp"
#include "types/row.hpp"

#include <span>
#include <string>
#include <string_view>

namespace dlock::dialects::mysql {

// Text is utf8mb4, as a bound one would be.
void append_literal(std::string& sql, const Argument& argument);

// Where a piece of the rows ends that begins at `at`: after the row with which its text, written once, has `size`
// bytes.
std::size_t end_of_piece(std::span<const Argument> rows, std::size_t columns, std::size_t at, std::size_t size);

// The text with the rows, of `columns` arguments each, wherever it asks for them, in one of these ways. Text is bytes
// here.
//   /*rows*/      tuples of their first `listed` columns
//   /*rows 1 3*/  tuples of these columns, counted from 1
//   /*table*/     SELECTs of all columns, with UNION ALL between them
//   /*each 3*/    that column of the row whose first one is the column `name`
std::string with_rows(std::string_view sql, std::span<const Argument> rows, std::size_t columns, std::size_t listed);

}  // namespace dlock::dialects::mysql
