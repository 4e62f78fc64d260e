// The order of the columns that describe a holder; when a row tells of a last run, and how that ended.
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

// Of a row that is not held. Who frees it without saying how has released it.
LastRun last_run_of(const Answer& answer, std::size_t row, bool has_owner) {
  LastRun last;
  last.node = answer.text(row, 1);
  last.label = answer.text(row, 3);
  last.begun = std::chrono::sys_time<Duration>{Duration{answer.integer(row, 13)}};
  last.ended = std::chrono::sys_time<Duration>{Duration{answer.integer(row, 14)}};
  const auto& outcome = answer.text(row, 15);
  last.outcome = has_owner || outcome == to_string(Outcome::expired) ? Outcome::expired
                 : outcome == to_string(Outcome::forced)             ? Outcome::forced
                                                                     : Outcome::released;
  if (last.outcome == Outcome::forced) last.reason = answer.text(row, 16);
  return last;
}

}  // namespace

Mode mode_of(std::string_view word) {
  for (const Mode mode : {Mode::shared, Mode::permits, Mode::node})
    if (to_string(mode) == word) return mode;
  return Mode::exclusive;
}

Availability availability_of(const Answer& answer) {
  return {answer.integer(0, 0) != 0,   Duration{answer.integer(0, 1)}, answer.integer(0, 2) != 0,
          answer.text(0, 3),           Duration{answer.integer(0, 4)}, answer.text(0, 5),
          Token{answer.integer(0, 6)}, answer.integer(0, 7) != 0};
}

Holder holder_of(const Answer& answer, std::size_t row) {
  Holder holder;
  holder.name = answer.text(row, 0);
  holder.owner = answer.text(row, 2);
  if (!holder.owner.empty()) {
    holder.node = answer.text(row, 1);
    holder.label = answer.text(row, 3);
  }
  holder.metadata = answer.text(row, 4);
  holder.token = Token{answer.integer(row, 5)};
  holder.state = state_of(answer.text(row, 6));
  holder.held = Duration{answer.integer(row, 7)};
  holder.left = Duration{answer.integer(row, 8)};
  if (holder.state == State::held) holder.entries = static_cast<int>(answer.integer(row, 9));
  holder.lease = Duration{answer.integer(row, 10)};
  holder.waiters = static_cast<std::size_t>(answer.integer(row, 11));
  holder.kept = answer.text(row, 12);
  for (const Mode mode : {Mode::shared, Mode::permits, Mode::node})
    if (answer.text(row, 17) == to_string(mode)) holder.mode = mode;
  holder.passed_on = answer.integer(row, 18) != 0;
  holder.permits = answer.integer(row, 19);
  holder.limit = answer.integer(row, 20);
  // Every grant has a node; what has none was locked by a transaction.
  const bool told = !answer.text(row, 1).empty() || !answer.text(row, 15).empty();
  // Of several, one of whose leases has ended, while another one's place stays taken: the name's run is not over.
  const bool places = holder.mode == Mode::shared || holder.mode == Mode::permits;
  const bool some_left = holder.state == State::closed && places && !holder.owner.empty();
  if (holder.state != State::held && answer.integer(row, 13) != 0 && told && !some_left)
    holder.last_run = last_run_of(answer, row, !holder.owner.empty());
  return holder;
}

}  // namespace dlock::store
