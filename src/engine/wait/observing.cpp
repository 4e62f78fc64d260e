// Waits until a name is free, and asks for nothing.
#include "engine/wait/observing.hpp"

#include "engine/wait/release_observer.hpp"
#include "types/mutant.hpp"

#include <algorithm>

namespace dlock::engine {
namespace {

constexpr Duration a_moment = std::chrono::seconds{1};

}  // namespace

bool wait_free(Context& context, Lingering& lingering, LateAttempts& late_attempts, const Name& name,
               const Patience& patience) {
  ReleaseObserver observer(context, name, patience);
  const auto called = BootClock::now();
  Instant busy_at{};
  while (!patience.stop.stop_requested()) {
    observer.attend();
    lingering.end(name.text(), {std::min(context.answer_by(patience.deadline), context.soon()), patience.stop});
    store::Availability availability;
    try {
      const Deadline deadline(context.answer_by(patience.deadline, called), patience.stop);
      availability = context.ask_unless_locked(
          name, deadline, [&](Deadline until) { return context.table->look(name.text(), 0, until); });
      if (availability.free) return true;
      if (late_attempts.free_late_grant(name, availability, deadline)) continue;
      busy_at = BootClock::now();
    } catch (const Error& error) {
      if (patience.stop.stop_requested()) return false;
      // It was held a moment ago: that the last look was not answered in time changes nothing.
      const auto now = BootClock::now();
      const bool doubt = error.fault() == Fault::in_doubt;
      if (now >= patience.deadline && now < later(busy_at, a_moment) && (doubt || is_transient(error.fault())))
        return false;
      if (doubt) throw Error(Fault::timeout, error.what());  // where nothing is taken there is none
      throw;
    }
    if (BootClock::now() >= patience.deadline) return false;
    if (observer.marks() && !planted("wait_free_no_second_look")) continue;  // and look again
    observer.rest(availability.opens_in, availability.holder);
  }
  return false;
}

}  // namespace dlock::engine
