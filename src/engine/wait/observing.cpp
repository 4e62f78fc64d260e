// What those who wait do beside asking for a grant: they mark a name, are shown, and put right what rows say of them.
#include "engine/core.hpp"
#include "engine/retry.hpp"
#include "engine/wait/release_observer.hpp"
#include "store/waiter_table.hpp"
#include "types/mutant.hpp"

#include <algorithm>
#include <utility>

namespace dlock {
inline namespace v0 {
namespace {

constexpr Duration longest_marking = std::chrono::milliseconds{100};
// A statement that has to be prepared first takes two round trips, and not all of them take the least time.
constexpr int trips_of_a_statement = 4;
// The shortest wait takes so long at most, where the database is silent: time enough to open a connection.
constexpr Duration time_of_a_try = std::chrono::milliseconds{250};
constexpr int trips_of_a_try = 10;
constexpr Duration a_moment = std::chrono::seconds{1};

}  // namespace

// A statement that leaves just before its caller's deadline still gets time for its answer: cutting it off would turn
// a clear answer into a doubtful one. The first one gets a little more: nothing is known yet. `called`: when.
Instant Core::answer_by(Instant deadline, Instant called) const noexcept {
  const auto time = std::min<Duration>(options_.timeouts.request, table_->answer_time());
  return std::max({deadline, later(BootClock::now(), time), later(called, within(time_of_a_try, trips_of_a_try))});
}

// For what is not worth waiting for.
Instant Core::shortly(Instant deadline) const noexcept {
  return std::min(answer_by(deadline), later(BootClock::now(), within(longest_marking, trips_of_a_statement)));
}

// Once, and not for long: without a mark nobody notifies, and looking at intervals has to do.
void Core::mark(const Name& name, Deadline deadline) {
  try {
    table_->waiting().want(name.text(), mark_length, deadline);
  } catch (const Failure&) {  // its row is locked, or the database away: the next look says which
  }
}

bool Core::wait_free(const Name& name, const Patience& patience) {
  ReleaseObserver observer(*this, name, patience);
  const auto called = BootClock::now();
  Instant busy_at{};
  while (!patience.stop.stop_requested()) {
    observer.attend();
    let_linger_no_more(name.text(), {std::min(answer_by(patience.deadline), soon()), patience.stop});
    store::Availability availability;
    try {
      const Deadline deadline(answer_by(patience.deadline, called), patience.stop);
      availability = ask_unless_locked(name, deadline.at(), patience.stop,
                                       [&](Deadline until) { return table_->look(name.text(), 0, until); });
      if (availability.free) return true;
      if (free_late_grant(name, availability, deadline)) continue;
      busy_at = BootClock::now();
    } catch (const Error& error) {
      if (patience.stop.stop_requested()) return false;
      // It was held a moment ago: that the last look was not answered in time changes nothing.
      const auto now = BootClock::now();
      if (now >= patience.deadline && now < later(busy_at, a_moment) && engine::is_transient(error.fault()))
        return false;
      throw;
    }
    if (BootClock::now() >= patience.deadline) return false;
    if (observer.marks() && !planted("wait_free_no_second_look")) continue;  // and look again
    observer.rest(availability.opens_in, availability.holder);
  }
  return false;
}

// Before a job is seen to wait, the rows of the grants that it has given away, or been given, say whose they are now:
// who follows the waits of others through them would find a deadlock that is none, or miss one. Throws Failure.
void Core::put_rows_right(const engine::JobRef& job, const Deadline& until) {
  if (!job || !job->any_astray()) return;
  auto strays = job->take_strays();
  if (job->away.load() > 0)
    for (const auto& core : job->cores())
      if (const auto alive = core.lock())
        for (auto& held : alive->entries_.of_this_thread())
          if (held->wrong_row()) strays.push_back({alive, std::move(held)});
  try {
    for (; !strays.empty(); strays.pop_back()) {
      const auto& [core, held, detached] = strays.back();
      const auto wrong = held->wrong_row();
      const auto its_core = core.lock();
      if (!wrong || !its_core) continue;
      const engine::SessionId actor(its_core->engine_id_, *wrong ? std::string_view{(*wrong)->id} : held->owner());
      its_core->table_->waiting().rename(detached ? held->key() : held->pinned_key(), actor.view(), until);
      held->row_names(*wrong);
      // It was moved on meanwhile, or the one who has it now has put the row right before this did it wrong.
      if (const auto now = held->wrong_row(); now && *now) (*now)->add(strays.back());
    }
  } catch (...) {
    for (auto& stray : strays) job->add(std::move(stray));
    throw;
  }
}

// Its row says that it is no job's any more: who follows the waits of others through it would find a deadlock that is none.
void Core::name_nobody(const engine::Lease& held) noexcept {
  try {
    const engine::SessionId actor(engine_id_, held.owner());
    retry({later(BootClock::now(), options_.timeouts.release)}, [&](Deadline until) {
      table_->waiting().rename(held.key(), actor.view(), until);
      return true;
    });
  } catch (const std::exception&) {  // until it is adopted, or ends, it counts as the job's
  }
}

}  // namespace v0
}  // namespace dlock
