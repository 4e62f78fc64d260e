// How the rows that the reaper asks for read, and are named in turn.
#include "store/reaper_rows.hpp"

#include <cstddef>
#include <string_view>

namespace dlock::store {

std::vector<Idle> idle_rows(const Answer& answer) {
  std::vector<Idle> found;
  found.reserve(answer.rows());
  for (std::size_t row = 0; row < answer.rows(); ++row)
    found.push_back({answer.text(row, 0), Token{answer.integer(row, 1)}, Duration{answer.integer(row, 2)}});
  return found;
}

std::vector<Argument> arguments_of(std::span<const Idle> rows) {
  std::vector<Argument> arguments;
  arguments.reserve(rows.size() * 3);
  for (const auto& row : rows) {
    arguments.emplace_back(std::string_view{row.name});
    arguments.emplace_back(number(row.token));
    arguments.emplace_back(row.expires_at.count());
  }
  return arguments;
}

std::vector<Abandoned> abandoned_rows(const Answer& answer) {
  std::vector<Abandoned> found;
  found.reserve(answer.rows());
  for (std::size_t row = 0; row < answer.rows(); ++row)
    found.push_back({answer.text(row, 0), answer.text(row, 1), answer.text(row, 2), Token{answer.integer(row, 3)},
                     Duration{answer.integer(row, 4)}});
  return found;
}

}  // namespace dlock::store
