// The literals of MySQL and MariaDB that mean the same in every sql_mode and character set.
#include "literals.hpp"

#include "dialects/hex.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace dlock::dialects::mysql {
namespace {

constexpr std::string_view begin_of_mark = "/*rows", end_of_mark = "*/", table_mark = "/*table*/", each_mark = "/*each";
constexpr std::size_t longest_number = 21;

void append(std::string& sql, const Argument& argument, std::string_view introducer) {
  if (const auto* number = std::get_if<std::int64_t>(&argument)) {
    sql += std::to_string(*number);
  } else if (const auto* text = std::get_if<std::string_view>(&argument)) {
    if (text->empty()) {
      sql += "''";
      return;
    }
    sql += introducer;
    sql += "0x";
    append_hex(sql, *text);
  } else {
    sql += "NULL";
  }
}

}  // namespace

void append_literal(std::string& sql, const Argument& argument) { append(sql, argument, "_utf8mb4 "); }

std::size_t end_of_piece(std::span<const Argument> rows, std::size_t columns, std::size_t at, std::size_t size) {
  for (std::size_t written = 0; at < rows.size() && written < size; at += columns)
    for (const auto& argument : rows.subspan(at, columns)) {
      const auto* text = std::get_if<std::string_view>(&argument);
      written += text == nullptr ? longest_number : 2 * text->size() + 4;
    }
  return at;
}

namespace {

// Writes the arguments of rows into a statement.
class RowWriter {
 public:
  RowWriter(std::string& sql, std::span<const Argument> rows, std::size_t columns)
      : sql_(sql), rows_(rows), columns_(columns) {}

  void list(std::span<const std::size_t> chosen, std::string_view first, std::string_view between,
            std::string_view last) {
    for (std::size_t at = 0; at < rows_.size(); at += columns_) {
      sql_ += at == 0 ? first : between;
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        if (i > 0) sql_ += ',';
        append(sql_, rows_[at + chosen[i]], {});
      }
    }
    sql_ += last;
  }

  // What each row, known by its name, has there: as it is, where it is the same for all.
  void each(std::size_t column) {
    bool same = true;
    for (std::size_t at = columns_; at < rows_.size() && same; at += columns_)
      same = rows_[at + column] == rows_[column];
    if (same) return append(sql_, rows_[column], {});
    sql_ += "CASE name";
    for (std::size_t at = 0; at < rows_.size(); at += columns_) {
      sql_ += " WHEN ";
      append(sql_, rows_[at], {});
      sql_ += " THEN ";
      append(sql_, rows_[at + column], {});
    }
    sql_ += " END";
  }

 private:
  std::string& sql_;
  const std::span<const Argument> rows_;
  const std::size_t columns_;
};

}  // namespace

std::string with_rows(std::string_view sql, std::span<const Argument> rows, std::size_t columns, std::size_t listed) {
  std::string result;
  RowWriter write(result, rows, columns);
  std::vector<std::size_t> chosen;
  for (;;) {
    const auto table = sql.find(table_mark), each = sql.find(each_mark);
    const auto at = std::min({sql.find(begin_of_mark), table, each});
    result += sql.substr(0, at);
    if (at == std::string_view::npos) return result;
    sql.remove_prefix(at);
    const auto end = sql.find(end_of_mark);
    chosen.clear();
    for (const char digit : sql.substr(begin_of_mark.size(), end - begin_of_mark.size()))
      if (digit >= '1' && digit <= '9') chosen.push_back(static_cast<std::size_t>(digit - '1'));
    if (at == each) {
      write.each(chosen.front());
    } else {
      if (chosen.empty())
        for (std::size_t column = 0; column < (at == table ? columns : listed); ++column) chosen.push_back(column);
      if (at == table) write.list(chosen, "SELECT ", " UNION ALL SELECT ", {});
      else write.list(chosen, "(", "),(", ")");
    }
    sql.remove_prefix(end + end_of_mark.size());
  }
}

}  // namespace dlock::dialects::mysql
