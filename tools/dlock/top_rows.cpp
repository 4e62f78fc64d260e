// How the rows of `dlock top` are sorted, counted and laid out.
#include "top_rows.hpp"

#include "show.hpp"

#include "tools/shared/usage.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace dlock::tools {
namespace {

constexpr std::array<std::string_view, columns> words{"name", "holder", "token", "held", "left", "waiters"};
constexpr std::size_t gap = 2, narrowest = 8;

std::size_t index(Column column) { return static_cast<std::size_t>(column); }
bool is_number(std::size_t column) { return column >= index(Column::token); }

// Whoever is known to wait; nothing where that is not known.
template <class Row>
std::optional<std::int64_t> waiters_of(const Row& row) {
  if constexpr (requires { std::optional<std::int64_t>(row.waiters); }) return row.waiters;
  else return std::nullopt;
}

// With permits how many are taken comes first, since a long cell loses its end.
std::string holder_of(const Holder& row) {
  return row.limit > 0 ? fmt::format("{} of {}: {}", row.permits, row.limit, who(row)) : who(row);
}

bool less(const Holder& one, const Holder& other, Column by) {
  switch (by) {
    case Column::name: return one.name < other.name;
    case Column::holder: return who(one) < who(other);
    case Column::token: return number(one.token) < number(other.token);
    case Column::held: return one.held < other.held;
    case Column::left: return one.left < other.left;
    case Column::waiters: return waiters_of(one).value_or(0) < waiters_of(other).value_or(0);
  }
  return false;
}

}  // namespace

std::optional<Column> column_named(std::string_view word) {
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return std::nullopt;
  return static_cast<Column>(found - words.begin());
}

const Cells& titles() {
  static const Cells all{"NAME", "HOLDER", "TOKEN", "HELD", "LEFT", "WAITERS"};
  return all;
}

std::vector<Holder> with_holder(std::vector<Holder> rows) {
  std::erase_if(rows, [](const Holder& row) { return row.state != State::held && row.state != State::expired; });
  return rows;
}

std::vector<Holder> arranged(std::vector<Holder> rows, const TopView& view) {
  if (!view.filter.empty())
    std::erase_if(rows, [&](const Holder& row) {
      return row.name.find(view.filter) == std::string::npos && who(row).find(view.filter) == std::string::npos;
    });
  std::sort(rows.begin(), rows.end(), [&](const Holder& one, const Holder& other) {
    const auto& first = view.reversed ? other : one;
    const auto& second = view.reversed ? one : other;
    if (less(first, second, view.by)) return true;
    return !less(second, first, view.by) && one.name < other.name;
  });
  return rows;
}

Cells cells_of(const Holder& row) {
  const auto waiters = waiters_of(row);
  return {printable(row.name),
          printable(holder_of(row)),
          std::to_string(number(row.token)),
          shown(row.held),
          left(row),
          waiters ? std::to_string(*waiters) : "-"};
}

std::string summary(const std::vector<Holder>& rows) {
  const auto held = std::count_if(rows.begin(), rows.end(), [](const Holder& row) { return row.state == State::held; });
  std::optional<std::int64_t> waiting;
  for (const auto& row : rows)
    if (const auto some = waiters_of(row)) waiting = waiting.value_or(0) + *some;
  auto text = fmt::format("{} held, {} expired", held, static_cast<std::ptrdiff_t>(rows.size()) - held);
  return waiting ? text + fmt::format(", {} waiting", *waiting) : text;
}

std::string as_text(const std::vector<Holder>& rows) {
  std::vector<Cells> lines{titles()};
  for (const auto& row : rows) lines.push_back(cells_of(row));
  const auto widths = widths_for(lines, std::numeric_limits<std::size_t>::max());
  std::string text = summary(rows);
  for (const auto& line : lines) text += "\n" + line_of(line, widths);
  return text;
}

std::size_t letters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string cut(const std::string& text, std::size_t length) {
  if (letters(text) <= length) return text;
  if (length == 0) return {};
  std::string result;
  std::size_t count = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80 && ++count == length) break;
    result += c;
  }
  return result + "…";
}

std::array<std::size_t, columns> widths_for(const std::vector<Cells>& rows, std::size_t width) {
  std::array<std::size_t, columns> widths{};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], letters(row[i]));
  std::size_t numbers = gap;
  for (std::size_t i = 0; i < columns; ++i)
    if (is_number(i)) numbers += widths[i] + gap;
  auto& name = widths[0];
  auto& holder = widths[1];
  const auto room = width > numbers ? width - numbers : 0;
  if (name + holder > room) {
    const auto wanted = holder;
    holder = std::max(narrowest, std::min(wanted, room / 2));
    name = std::max(narrowest, room > holder ? room - holder : 0);
  }
  return widths;
}

std::string line_of(const Cells& cells, const std::array<std::size_t, columns>& widths) {
  std::string line;
  for (std::size_t i = 0; i < columns; ++i) {
    const auto text = cut(cells[i], widths[i]);
    const std::string blanks(widths[i] - std::min(letters(text), widths[i]), ' ');
    if (i > 0) line += std::string(gap, ' ');
    line += is_number(i) ? blanks + text : text + blanks;
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

}  // namespace dlock::tools
