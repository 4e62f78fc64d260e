// Ends what is not held by who asks: one grant by force, a row that nobody uses, and what the reaper finds.
#include "engine/removing.hpp"

#include "store/reaper_table.hpp"
#include "types/mutant.hpp"
#include "types/pause.hpp"

#include <optional>
#include <utility>

namespace dlock::engine {
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
Removal Remover::remove(const Name& name, Holder* row, const std::stop_token& stop) {
  Doubt doubt;
  try {
    return look_and_remove(name, row, stop, doubt);
  } catch (const Error& error) {
    if (!stop.stop_requested() || !is_transient(error.fault())) throw;
    if (doubt) throw Error(Fault::in_doubt, error.what(), error.vendor_code());
    return Removal::stopped;
  }
}

// `doubt`: whether the row may have been removed.
Removal Remover::look_and_remove(const Name& name, Holder* row, const std::stop_token& stop, Doubt& doubt) {
  const auto soon = [&] { return Deadline(context_.soon(), stop); };
  lingering_.end(name.text(), soon());
  const auto told = [&](Removal removal, std::optional<Holder> found) {
    if (row != nullptr && found) *row = std::move(*found);
    return removal;
  };
  auto found = inspector_.inspect(name, stop);
  if (const auto now = reason_to_stay(found)) return told(*now, std::move(found));
  auto& reaper_table = context_.table->reaping();
  const auto look = [&] {
    return context_.retry(soon(), [&](Deadline until) { return reaper_table.idle_row(name.text(), until); });
  };
  auto seen = look();
  if (!seen) {  // what several had is free once all have given it back, and its row does not say so yet
    const Identity settler;
    context_.retry(soon(), [&](Deadline until) {
      return reaper_table.settle(name.text(), found->token, std::string_view{settler}, until);
    });
    seen = look();
  }
  if (!seen) {
    found = inspector_.inspect(name, stop);
    return told(found ? Removal::in_use : Removal::absent, std::move(found));
  }
  context_.retry(soon(), [&](Deadline until) { return reaper_table.raise_floor_to(seen->token, until); });
  const Duration grace = planted("remove_without_grace") ? Duration{} : Duration{context_.options.reaper.grace};
  if (pause_until(later(BootClock::now(), grace), stop)) return Removal::stopped;
  if (context_.retry(soon(), doubt, [&](Deadline until) { return reaper_table.remove_idle({&*seen, 1}, until); }) > 0)
    return Removal::removed;
  // It is not what was seen any more, or marked as wanted, or locked by a transaction.
  found = inspector_.inspect(name, stop);
  if (!found) return Removal::removed;  // by this call, whose answer was lost, or by another one
  if (const auto now = reason_to_stay(found)) return told(*now, std::move(found));
  const auto availability =
      context_.retry(soon(), [&](Deadline until) { return context_.table->look(name.text(), 0, until); });
  const bool marked = availability.wanted_for > Duration{} && found->token == seen->token;
  return told(marked ? Removal::wanted : Removal::in_use, std::move(found));
}

bool Remover::force_release(const Name& name, Token seen, std::string_view reason) {
  // What lingers here is granted to nobody any more, whatever comes of this.
  const auto lingering = lingering_.take(name.text());
  Doubt doubt;
  bool moved = false;
  try {
    moved = context_.retry(context_.soon(), doubt, [&](Deadline deadline) {
      return context_.table->force_release(name.text(), seen, reason, deadline);
    });
  } catch (...) {
    if (lingering) lingering_.let_go(*lingering, context_.shortly(BootClock::now()));
    throw;
  }
  if (lingering) lingering_.let_go(*lingering, context_.soon());
  if ((moved || doubt) && !planted("force_wakes_nobody")) context_.queues->wake_head(name.text());
  if (moved || !doubt) return moved;
  const auto row = inspector_.inspect(name);  // an attempt without an answer may have done it
  return row && row->last_run && row->last_run->outcome == Outcome::forced && number(row->token) == number(seen) + 1;
}

Engine::Reaped Remover::reap(std::size_t batch) {
  try {
    return context_.reaper.round(batch);
  } catch (const Failure& failure) { throw to_error(failure, failure.may_have_run()); }
}

Engine::Reaped Remover::reap_all(const Reaping& reaping, const std::stop_token& stop) {
  try {
    return context_.reaper.pass(reaping, stop);
  } catch (const Failure& failure) { throw to_error(failure, failure.may_have_run()); }
}

}  // namespace dlock::engine
