// This file knows the order of the columns that describe a holder.
#include "store/holder_rows.hpp"

#include <stdexcept>
#include <string_view>

namespace dlock::store {
namespace {

State state_of(std::string_view word) {
  for (const State state : {State::free, State::held, State::closed, State::expired})
    if (to_string(state) == word) return state;
  throw std::logic_error("a statement answered a state that does not exist");
}

}  // namespace

Holder holder_of(const Answer& answer, std::size_t row) {
  Holder holder;
  holder.name = answer.text(row, 0);
  holder.node = answer.text(row, 1);
  holder.owner = answer.text(row, 2);
  holder.label = answer.text(row, 3);
  holder.metadata = answer.text(row, 4);
  holder.token = Token{answer.integer(row, 5)};
  holder.state = state_of(answer.text(row, 6));
  holder.held = Duration{answer.integer(row, 7)};
  holder.left = Duration{answer.integer(row, 8)};
  holder.entries = static_cast<int>(answer.integer(row, 9));
  holder.lease = Duration{answer.integer(row, 10)};
  holder.waiters = static_cast<std::size_t>(answer.integer(row, 11));
  holder.kept = answer.text(row, 12);
  return holder;
}

}  // namespace dlock::store
