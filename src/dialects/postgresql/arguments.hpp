// How arguments are written for libpq: as text, many rows of them as one array a column.
#pragma once

#include "types/row.hpp"

#include <span>
#include <string>
#include <vector>

namespace dlock::dialects::postgresql {

// The arguments of one statement at a time. Keeps its memory, so that a steady state allocates nothing.
// Fails: Failure{rejected} for a text with a NUL byte, which would be cut off there without a word.
class Arguments {
 public:
  void set(std::span<const Argument> arguments);
  // `rows` holds rows of `columns` arguments each, row after row.
  void set_rows(std::span<const Argument> rows, std::size_t columns);

  int count() const noexcept { return static_cast<int>(values_.size()); }
  // As libpq takes them: NUL-terminated texts, and a null pointer for NULL.
  const char* const* values() const noexcept { return values_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<const char*> values_;
};

}  // namespace dlock::dialects::postgresql
