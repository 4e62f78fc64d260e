// Removes the row of one name that nobody uses, in the two steps of the reaper.
#include "engine/core.hpp"
#include "engine/pause.hpp"
#include "engine/retry.hpp"
#include "types/mutant.hpp"

#include <optional>
#include <utility>

namespace dlock {
inline namespace v0 {
namespace {

// As far as the row shows it. Empty: nothing speaks against removing it.
std::optional<Removal> reason_to_stay(const std::optional<Holder>& row) {
  if (!row) return Removal::absent;
  if (row->state != State::free) return Removal::in_use;
  if (row->waiters > 0) return Removal::wanted;
  return std::nullopt;
}

}  // namespace

// The row that is removed is the one that was seen before the grace: who has taken it since has moved its token on, and
// the statement that removes reads the floor again. So nothing has to be undone if this ends anywhere in the middle: a
// floor that was raised for nothing only makes the next new tokens larger.
Removal Core::remove(const Name& name, Holder* row, const std::stop_token& stop) {
  let_linger_no_more(name.text(), {soon(), stop});
  const auto told = [&](Removal removal, std::optional<Holder> found) {
    if (row != nullptr && found) *row = std::move(*found);
    return removal;
  };
  auto found = inspect(name);
  if (const auto now = reason_to_stay(found)) return told(*now, std::move(found));
  const auto seen = retry(soon(), [&](Deadline until) { return table_->idle_row(name.text(), until); });
  if (!seen) {
    found = inspect(name);
    return told(found ? Removal::in_use : Removal::absent, std::move(found));
  }
  retry(soon(), [&](Deadline until) { return table_->raise_floor_to(seen->token, until); });
  const Duration grace = planted("remove_without_grace") ? Duration{} : Duration{options_.reaper.grace};
  if (engine::pause_until(later(BootClock::now(), grace), stop)) return Removal::stopped;
  if (retry(soon(), [&](Deadline until) { return table_->remove_idle({&*seen, 1}, until); }) > 0)
    return Removal::removed;
  // It is not what was seen any more, or marked as wanted, or locked by a transaction.
  found = inspect(name);
  if (!found) return Removal::removed;  // by this call, whose answer was lost, or by another one
  if (const auto now = reason_to_stay(found)) return told(*now, std::move(found));
  const auto availability = retry(soon(), [&](Deadline until) { return table_->look(name.text(), 0, until); });
  const bool marked = availability.wanted_for > Duration{} && found->token == seen->token;
  return told(marked ? Removal::wanted : Removal::in_use, std::move(found));
}

}  // namespace v0
}  // namespace dlock
