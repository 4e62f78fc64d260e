// The values that go into a statement and come out of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dlock {

// An argument of a statement. Text is borrowed for the call.
using Argument = std::variant<std::nullptr_t, std::int64_t, std::string_view>;

// A field of an answer.
using Field = std::variant<std::nullptr_t, std::int64_t, std::string>;

// What a statement answered. Kept by a connection and used again, so that a steady state allocates nothing.
class Answer {
 public:
  void reset(std::size_t columns) {
    columns_ = columns;
    used_ = 0;
    affected = 0;
  }
  // The next free field, in reading order. It keeps its old value (and its memory) until it is assigned.
  Field& next() {
    if (used_ == fields_.size()) fields_.emplace_back();
    return fields_[used_++];
  }

  std::size_t rows() const noexcept { return columns_ == 0 ? 0 : used_ / columns_; }
  std::size_t columns() const noexcept { return columns_; }
  bool is_null(std::size_t row, std::size_t column) const {
    return std::holds_alternative<std::nullptr_t>(at(row, column));
  }
  // Throw std::bad_variant_access if the field is of another kind: a defect of a statement's text. No number is NULL
  // unless the database was interrupted while it answered, and did not say so (MySQL: KILL QUERY, max_execution_time):
  // throws Failure then, since nobody knows what else is missing.
  std::int64_t integer(std::size_t row, std::size_t column) const {
    const Field& field = at(row, column);
    if (std::holds_alternative<std::nullptr_t>(field)) throw_interrupted();
    return std::get<std::int64_t>(field);
  }
  // NULL reads as the empty text.
  const std::string& text(std::size_t row, std::size_t column) const;

  // The rows of another answer with as many columns, after these.
  void add(const Answer& other) {
    if (rows() == 0) columns_ = other.columns_;
    for (std::size_t field = 0; field < other.used_; ++field) next() = other.fields_[field];
    affected += other.affected;
  }

  std::int64_t affected = 0;  // rows matched by an INSERT, UPDATE or DELETE (matched, not changed, on every database)

 private:
  [[noreturn]] static void throw_interrupted();
  const Field& at(std::size_t row, std::size_t column) const { return fields_.at(row * columns_ + column); }
  std::size_t columns_ = 0, used_ = 0;
  std::vector<Field> fields_;
};

}  // namespace dlock
