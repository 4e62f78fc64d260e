// How an argument is written so that no setting of a session can make it mean something else.
#include "literals.hpp"

#include "dialects/hex.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string_view>
#include <variant>

namespace dlock::dialects::postgresql {

void append_literal(std::string& sql, const Argument& argument) {
  if (const auto* number = std::get_if<std::int64_t>(&argument)) {
    // In brackets: a cast binds tighter than a sign.
    fmt::format_to(std::back_inserter(sql), "({})", *number);
  } else if (const auto* text = std::get_if<std::string_view>(&argument)) {
    sql += "convert_from(decode('";
    append_hex(sql, *text);
    sql += "','hex'),'UTF8')";
  } else {
    sql += "NULL";
  }
}

}  // namespace dlock::dialects::postgresql
