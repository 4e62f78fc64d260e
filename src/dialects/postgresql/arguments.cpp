// The text forms of PostgreSQL's values.
#include "arguments.hpp"

#include "types/failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace dlock::dialects::postgresql {
namespace {

std::string_view checked(std::string_view text) {
  if (text.find('\0') != std::string_view::npos)
    throw Failure(Cause::rejected, "PostgreSQL: a text with a NUL byte cannot be an argument");
  return text;
}

// Texts are always in double quotes: without them NULL, blanks, commas and braces mean something in an array.
void append_element(std::string& literal, const Argument& argument) {
  literal += literal.empty() ? '{' : ',';
  if (std::holds_alternative<std::nullptr_t>(argument)) {
    literal += "NULL";
  } else if (const auto* number = std::get_if<std::int64_t>(&argument)) {
    fmt::format_to(std::back_inserter(literal), "{}", *number);
  } else {
    literal += '"';
    for (const char c : checked(std::get<std::string_view>(argument))) {
      if (c == '"' || c == '\\') literal += '\\';
      literal += c;
    }
    literal += '"';
  }
}

}  // namespace

void Arguments::set(std::span<const Argument> arguments) {
  texts_.resize(std::max(texts_.size(), arguments.size()));
  values_.clear();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto& text = texts_[i];
    if (std::holds_alternative<std::nullptr_t>(arguments[i])) {
      values_.push_back(nullptr);
      continue;
    }
    text.clear();
    if (const auto* number = std::get_if<std::int64_t>(&arguments[i]))
      fmt::format_to(std::back_inserter(text), "{}", *number);
    else text.assign(checked(std::get<std::string_view>(arguments[i])));
    values_.push_back(text.c_str());
  }
}

void Arguments::set_rows(std::span<const Argument> rows, std::size_t columns) {
  texts_.resize(std::max(texts_.size(), columns));
  values_.clear();
  for (std::size_t column = 0; column < columns; ++column) {
    auto& literal = texts_[column];
    literal.clear();
    for (std::size_t at = column; at < rows.size(); at += columns) append_element(literal, rows[at]);
    literal += literal.empty() ? "{}" : "}";
    values_.push_back(literal.c_str());
  }
}

}  // namespace dlock::dialects::postgresql
