// How what may be held by nobody is freed.
#include "engine/lease/leftovers.hpp"

#include "types/mutant.hpp"
#include "types/pause.hpp"

namespace dlock::engine {

bool free_leftover(store::LockTable& table, const Leftover& leftover, const std::function<Instant()>& until) {
  if (!leftover.freed && leftover.closed != Token{})
    table.extend({leftover.name, leftover.owner, leftover.closed}, Duration{1}, store::reopens, until());
  if (leftover.mode != Mode::exclusive) {
    table.withdraw(leftover.name, leftover.owner, until(), leftover.mode, leftover.kept);
    return !leftover.freed;
  }
  if (!leftover.freed) {
    table.withdraw(leftover.name, leftover.owner, until(), leftover.mode);
    return true;
  }
  if (const auto availability = table.look(leftover.name, 0, until());
      availability.owner == leftover.owner && availability.token != leftover.kept) {
    const store::LeaseKey key{leftover.name, leftover.owner, availability.token};
    return table.release(key, until());
  }
  return false;
}

void withdraw_at_last(store::LockTable& table, std::vector<Leftover> left, Duration patience,
                      const std::function<Instant(Duration)>& ends_within) {
  constexpr Duration pause = std::chrono::milliseconds{20};
  table.drain(Deadline(ends_within(2 * patience)).share(2));
  auto until = ends_within(patience);
  while (!left.empty() && BootClock::now() < until) {
    auto& newest = left.back();
    newest.freed = newest.freed && newest.kept != Token{};
    try {
      free_leftover(table, newest, [until] { return until; });
      left.pop_back();
      until = ends_within(patience);
      continue;
    } catch (const std::exception&) {  // on another connection, or once the row is not locked any more
    }
    if (planted("withdrawn_once_at_last")) {
      left.pop_back();
      continue;
    }
    std::rotate(left.begin(), left.end() - 1, left.end());
    pause_until(std::min(until, later(BootClock::now(), pause)), {});
  }
}

}  // namespace dlock::engine
