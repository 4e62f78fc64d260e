// How a field is read as text.
#include "types/row.hpp"

namespace dlock {

const std::string& Answer::text(std::size_t row, std::size_t column) const {
  static const std::string empty;
  const Field& field = at(row, column);
  return std::holds_alternative<std::nullptr_t>(field) ? empty : std::get<std::string>(field);
}

}  // namespace dlock
