// What the engine makes of a failed statement: try again, or tell the caller, and how.
#pragma once

#include "types/failure.hpp"

#include <dlock/error.hpp>

namespace dlock::engine {

// Whether the same question may succeed if it is asked again a little later.
bool is_transient(Cause cause) noexcept;
bool is_transient(Fault fault) noexcept;

// The failure as the caller sees it. `in_doubt`: the question may have been carried out, now or in an earlier attempt.
Error to_error(const Failure& failure, bool in_doubt);

// Whether it tells of the database, or of the way to it. What was not even sent, for want of a connection or of time, tells
// only that.
bool is_telling(const Failure& failure) noexcept;

// The last of several failures of one question, after an earlier one that was telling: both, as a failure like that one.
Failure after_telling(const Failure& earlier, const Failure& last);

}  // namespace dlock::engine
