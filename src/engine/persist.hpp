// This file knows how a question is put until there is an answer.
#pragma once

#include "engine/backoff.hpp"
#include "engine/core.hpp"
#include "engine/faults.hpp"
#include "engine/pause.hpp"

#include <algorithm>

namespace dlock {
inline namespace v0 {

// Puts a question until it is answered, the deadline has passed, or asking again is useless. One attempt takes at most
// request_timeout, so that a connection that hangs does not use up a long wait.
template <class Ask>
auto Core::persist(Deadline deadline, const std::stop_token& stop, bool& in_doubt, Ask ask) -> decltype(ask(deadline)) {
  engine::Backoff backoff(std::chrono::seconds{1});
  for (;;) {
    try {
      return ask(std::min(deadline, soon()));
    } catch (const Failure& failure) {
      in_doubt = in_doubt || failure.may_have_run();
      if (!engine::passing(failure.cause())) throw engine::told(failure, in_doubt);
      const auto again = later(BootClock::now(), backoff.next());
      if (again >= deadline) throw engine::told(failure, in_doubt);
      reporter_->tell(Event::Kind::retried, {}, {}, {}, failure.what());
      if (engine::pause_until(again, stop)) throw engine::told(failure, in_doubt);
    }
  }
}

template <class Ask>
auto Core::persist(Deadline deadline, Ask ask) -> decltype(ask(deadline)) {
  bool in_doubt = false;
  return persist(deadline, {}, in_doubt, std::move(ask));
}

}  // namespace v0
}  // namespace dlock
