// How a field is read as text; what it says that a number is missing.
#include "types/row.hpp"

#include "types/failure.hpp"

namespace dlock {

const std::string& Answer::text(std::size_t row, std::size_t column) const {
  static const std::string empty;
  const Field& field = at(row, column);
  return std::holds_alternative<std::nullptr_t>(field) ? empty : std::get<std::string>(field);
}

void Answer::throw_interrupted() {
  throw Failure(Cause::timed_out, "the database was interrupted while it answered: a number is missing", {}, true);
}

}  // namespace dlock
