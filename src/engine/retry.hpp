// Puts a question until there is an answer.
#pragma once

#include "engine/backoff.hpp"
#include "engine/core.hpp"
#include "engine/faults.hpp"
#include "engine/pause.hpp"
#include "types/mutant.hpp"
#include "types/name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

namespace dlock {
inline namespace v0 {

// Puts a question until it is answered, the deadline has passed, a stop is asked for, or asking again is useless. One
// attempt takes at most timeouts.request, so that a connection that hangs does not use up a long wait. What is thrown names
// the cause if any attempt was told it, though the last was not even sent.
template <class Call>
auto Core::retry(Instant deadline, const std::stop_token& stop, bool& in_doubt, Call ask)
    -> decltype(ask(Deadline::max())) {
  constexpr Duration last_look = std::chrono::milliseconds{50};
  engine::Backoff backoff(std::chrono::seconds{1});
  std::optional<Failure> telling;
  const auto error_of = [&](const Failure& last) {
    const bool told = telling && !engine::is_telling(last) && !planted("last_look_told");
    return engine::to_error(told ? engine::after_telling(*telling, last) : last, in_doubt);
  };
  for (;;) {
    try {
      return ask(Deadline(std::min(deadline, soon()), stop));
    } catch (const Failure& failure) {
      in_doubt = in_doubt || failure.may_have_run();
      if (!engine::is_transient(failure.cause())) throw engine::to_error(failure, in_doubt);
      // In words of its own: those of an exception may be shared with another thread.
      if (engine::is_telling(failure)) telling.emplace(failure.cause(), std::string(failure.what()), failure.code());
      const auto now = BootClock::now();
      auto again = later(now, backoff.next());
      // Once more shortly before time is up, so that nobody gives up much sooner than that.
      if (again >= deadline) {
        again = now < deadline ? deadline - within(last_look, 2) : now;
        if (again <= now) throw error_of(failure);
      }
      events_->emit_retry(failure);
      if (engine::pause_until(again, stop)) throw error_of(failure);
    }
  }
}

// Likewise for what changes nothing. Where it cannot be asked because of what others have locked: throws Error{timeout},
// which says what that is.
template <class Call>
auto Core::ask_unless_locked(const Name& name, Instant deadline, const std::stop_token& stop, Call ask)
    -> decltype(ask(Deadline::max())) {
  bool in_doubt = false, locked = false;
  try {
    return retry(deadline, stop, in_doubt, [&](Deadline until) {
      try {
        return ask(until);
      } catch (const Failure& failure) {
        locked = locked || failure.cause() == Cause::locked;
        throw;
      }
    });
  } catch (const Error& error) {
    if (!locked || stop.stop_requested()) throw;
    const auto found = blocked(name, stop);
    throw Error(Fault::timeout,
                fmt::format("nobody could see whether {} is free: {}", in_quotes(name.text()),
                            found.text.empty() ? error.what() : found.text),
                error.vendor_code());
  }
}

template <class Call>
auto Core::retry(const Deadline& deadline, Call ask) -> decltype(ask(Deadline::max())) {
  bool in_doubt = false;
  return retry(deadline.at(), deadline.stop(), in_doubt, std::move(ask));
}

}  // namespace v0
}  // namespace dlock
