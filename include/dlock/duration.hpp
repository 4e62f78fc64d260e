// This file knows the unit of every time at dlock's face: the microsecond, as in the table.
#pragma once

#include <chrono>

namespace dlock {
inline namespace v0 {

// A length of time. Wider durations saturate where they enter (`std::chrono::hours::max()` means "for ever").
using Duration = std::chrono::microseconds;

}  // namespace v0
}  // namespace dlock
