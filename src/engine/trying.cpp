// Tries to be granted a name without status in line, and tells what is in the way where nobody holds it.
#include "engine/core.hpp"
#include "engine/pause.hpp"
#include "engine/request.hpp"
#include "engine/retry.hpp"
#include "types/name.hpp"

#include <dlock/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace dlock {
inline namespace v0 {
namespace {

// A row that is locked by another transaction is looked at again for this long before the answer is "busy":
// it may have been a release on its way.
constexpr Duration locked_patience = std::chrono::milliseconds{50};
constexpr Duration locked_pause = std::chrono::milliseconds{5};
constexpr Duration longest_locked_pause = std::chrono::milliseconds{100};
// Where each attempt finds the row locked and each look finds that it is not: others take turns at it.
constexpr int most_turns_of_others = 3;

}  // namespace

using engine::Lease;

// Once, unless the row is only locked: then a little longer. Who tries again and again is answered by a read, which costs
// less than an attempt in vain.
std::shared_ptr<Lease> Core::try_first(Request& request, const Patience& patience) {
  const bool only_tries = !patience.waits && request.entry.empty();
  const auto& name = request.name.text();
  if (only_tries && !renewer_.has_leftovers(name) && busy_.lately(name, request.first_sent)) try {
      if (table_->busy(name, {std::min(answer_by(patience.deadline), soon()), patience.stop})) {
        request.row_locked = false;
        busy_.note(request.name.text(), BootClock::now());
        return nullptr;
      }
    } catch (const Failure&) {  // the attempt tells what is wrong, if it still is
    }
  const auto give_up_on_lock = std::min(patience.deadline, later(request.first_sent, within(locked_patience, 2)));
  engine::Polling pauses(locked_pause, longest_locked_pause);
  for (;;) {
    if (auto held = try_once(request, patience.deadline, patience.stop)) return held;
    if (free_late_grant(request.name, {answer_by(patience.deadline), patience.stop})) continue;
    const auto now = BootClock::now();
    if (only_tries && !request.row_locked) busy_.note(request.name.text(), now);
    // Where an attempt of its own got no answer, it may be that one that has locked the row.
    const auto give_up = request.unanswered ? patience.deadline : give_up_on_lock;
    if (!request.row_locked || now >= patience.deadline || (patience.waits && now >= give_up)) return nullptr;
    // Who only tries is told that it is busy as soon as that is known; what is in the way without holding it may go.
    if (now >= give_up) {
      if (const auto found = blocked(request.name, patience.stop); found.rightly) {
        request.found_locked = found.locked;
        request.row_locked = false;
        return nullptr;
      }
    }
    if (engine::pause_until(later(now, pauses.next()), patience.stop)) return nullptr;
  }
}

store::Blocked Core::blocked(const Name& name, const std::stop_token& stop, Instant deadline) {
  bool in_doubt = false;
  return retry(std::min(deadline, soon()), stop, in_doubt,
               [&](Deadline until) { return table_->blocked(name.text(), until); });
}

// Out of patience, and the row could not be had. Empty: busy, since somebody holds it, or has its row locked. Where it is
// neither, that is no answer: throws Error{timeout}, and says what is in the way.
std::shared_ptr<Lease> Core::look_into_lock(Request& request, const Patience& patience) {
  std::optional<Token> before;
  // Who has found the database silent does not wait for it much longer.
  const auto deadline = request.silent ? answer_by(BootClock::now()) : Instant::max();
  for (int turn = 0; turn <= most_turns_of_others; ++turn) {
    const auto found = blocked(request.name, patience.stop, deadline);
    request.found_locked = found.rightly && found.locked;
    if (found.rightly) return nullptr;
    if (!found.text.empty())
      throw Error(Fault::timeout, fmt::format("{} could not be locked in time, though nobody holds it: {}",
                                              in_quotes(request.name.text()), found.text));
    // Who was granted it since the last look, or has it now, is a witness, too.
    const auto availability = retry({std::min(deadline, soon()), patience.stop}, [&](Deadline until) {
      return table_->look(request.name.text(), request.ticket, until);
    });
    if (!availability.free || (before && availability.token != *before)) return nullptr;
    before = availability.token;
    if (turn == most_turns_of_others) break;
    if (auto held = try_once(request, patience.deadline, patience.stop)) return held;
    if (!request.row_locked) return nullptr;
  }
  throw Error(Fault::timeout, fmt::format("{} could not be locked in time, though nobody is seen to hold it: another "
                                          "transaction keeps its place in the table locked",
                                          in_quotes(request.name.text())));
}

}  // namespace v0
}  // namespace dlock
