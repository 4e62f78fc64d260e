// This file knows the literals of MySQL and MariaDB that mean the same in every sql_mode and character set.
#include "literals.hpp"

#include <string_view>

namespace dlock::dialects::DLOCK_DIALECT {
namespace {

constexpr std::string_view row_mark = "/*rows*/";

void append(std::string& sql, const Argument& argument, std::string_view introducer) {
  constexpr std::string_view digits = "0123456789abcdef";
  if (const auto* number = std::get_if<std::int64_t>(&argument)) {
    sql += std::to_string(*number);
  } else if (const auto* text = std::get_if<std::string_view>(&argument)) {
    if (text->empty()) {
      sql += "''";
      return;
    }
    sql += introducer;
    sql += "0x";
    for (const char c : *text) {
      const auto byte = static_cast<unsigned char>(c);
      sql += digits[byte >> 4U];
      sql += digits[byte & 15U];
    }
  } else {
    sql += "NULL";
  }
}

// The end of the quoted text or comment that begins at `from`, or `from` if none does.
std::size_t past_quoted(std::string_view sql, std::size_t from) {
  const auto past = [&](std::string_view end, std::size_t begin) {
    const auto at = sql.find(end, begin);
    return at == std::string_view::npos ? sql.size() : at + end.size();
  };
  if (const auto c = sql.substr(from, 1); c == "'" || c == "\"" || c == "`") return past(c, from + 1);
  if (sql.substr(from, 2) == "--") return past("\n", from);
  if (sql.substr(from, 2) == "/*") return past("*/", from);
  return from;
}

}  // namespace

std::string with_literals(const Statement& statement, std::span<const Argument> arguments) {
  const std::string_view sql = statement.sql;
  std::string result;
  auto marker = statement.markers.begin();
  for (std::size_t i = 0; i < sql.size();) {
    if (const auto past = past_quoted(sql, i); past != i) {
      result += sql.substr(i, past - i);
      i = past;
    } else if (sql[i] == '?' && marker != statement.markers.end()) {
      append(result, arguments[*marker++], "_utf8mb4 ");
      ++i;
    } else {
      result += sql[i++];
    }
  }
  return result;
}

std::string tuples(std::span<const Argument> rows, std::size_t columns, std::size_t size, std::size_t& at) {
  std::string list;
  for (; at < rows.size() && list.size() < size; at += columns) {
    list += list.empty() ? "(" : ",(";
    for (std::size_t column = 0; column < columns; ++column) {
      if (column > 0) list += ',';
      append(list, rows[at + column], {});
    }
    list += ')';
  }
  return list;
}

std::string with_rows(const Statement& statement, const std::string& list) {
  std::string_view sql = statement.sql;
  std::string result;
  for (auto at = sql.find(row_mark); at != std::string_view::npos; at = sql.find(row_mark)) {
    result += sql.substr(0, at);
    result += list;
    sql.remove_prefix(at + row_mark.size());
  }
  return result += sql;
}

}  // namespace dlock::dialects::DLOCK_DIALECT
