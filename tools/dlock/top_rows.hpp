// The table of `dlock top`: which rows, in which order, in which words.
#pragma once

#include <dlock/holder.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::tools {

enum class Column : std::size_t { name, holder, token, held, left, waiters };
constexpr std::size_t columns = 6;
using Cells = std::array<std::string, columns>;

std::optional<Column> column_named(std::string_view word);
const Cells& titles();

struct TopView {
  Column by = Column::name;
  bool reversed = false;
  std::string filter{};  // a part of the name, or of the holder
};

// Held ones, and those whose lease has ended without release.
std::vector<Holder> with_holder(std::vector<Holder> rows);
// Filtered and sorted; rows that are alike, by name.
std::vector<Holder> arranged(std::vector<Holder> rows, const TopView& view);

Cells cells_of(const Holder& row);
// "3 held, 1 expired, 2 waiting"
std::string summary(const std::vector<Holder>& rows);
// The summary and the table.
std::string as_text(const std::vector<Holder>& rows);

// As a terminal counts them.
std::size_t letters(std::string_view text);
// With "…" at its end if it is longer.
std::string cut(const std::string& text, std::size_t length);
// The widths of the columns in a screen that is `width` wide: numbers get what they need, names and holders the rest.
std::array<std::size_t, columns> widths_for(const std::vector<Cells>& rows, std::size_t width);
// One line, numbers to the right.
std::string line_of(const Cells& cells, const std::array<std::size_t, columns>& widths);

}  // namespace dlock::tools
