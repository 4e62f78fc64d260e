// Waits for a descriptor until a deadline, or until the caller of the request asks to stop; looks at one at rest.
#pragma once

#include "types/clock.hpp"

namespace dlock::dialects {

// Waits until `descriptor` has one of poll(2)'s `events`, or is broken, which whoever uses it will be told. Answers
// what it has; 0: the deadline has passed.
short wait_until_ready(int descriptor, short events, const Deadline& deadline);

// What the other end of a connection has done while nothing was asked of it.
enum class Unasked {
  nothing,
  said_something,
  ended,  // it says no more, whatever it has said before; or the connection is broken
};
Unasked look_at_rest(int descriptor) noexcept;

// Tells the other end of a connection that nothing more comes, and reads what it says, which nobody wants, until it has
// ended the connection too. False: not by then.
bool drain(int descriptor, const Deadline& deadline) noexcept;

}  // namespace dlock::dialects
