// This file knows the literals of MySQL and MariaDB that mean the same in every sql_mode and character set.
#include "literals.hpp"

#include "dialects/hex.hpp"

#include <string_view>

namespace dlock::dialects::DLOCK_DIALECT {
namespace {

constexpr std::string_view row_mark = "/*rows*/";

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

std::string tuples(std::span<const Argument> rows, std::size_t columns, std::size_t listed, std::size_t size,
                   std::size_t& at) {
  std::string list;
  for (; at < rows.size() && list.size() < size; at += columns) {
    list += list.empty() ? "(" : ",(";
    for (std::size_t column = 0; column < listed; ++column) {
      if (column > 0) list += ',';
      append(list, rows[at + column], {});
    }
    list += ')';
  }
  return list;
}

std::string with_rows(std::string_view sql, const std::string& list) {
  std::string result;
  for (auto at = sql.find(row_mark); at != std::string_view::npos; at = sql.find(row_mark)) {
    result += sql.substr(0, at);
    result += list;
    sql.remove_prefix(at + row_mark.size());
  }
  return result += sql;
}

}  // namespace dlock::dialects::DLOCK_DIALECT
