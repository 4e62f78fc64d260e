// This file knows what the engine makes of a failed statement: try again, or tell the caller, and how.
#pragma once

#include "types/failure.hpp"

#include <dlock/error.hpp>

namespace dlock::engine {

// Whether the same question may succeed if it is asked again a little later.
bool is_transient(Cause cause) noexcept;
bool is_transient(Fault fault) noexcept;

// The failure as the caller sees it. `in_doubt`: the question may have been carried out, now or in an earlier attempt.
Error to_error(const Failure& failure, bool in_doubt);

}  // namespace dlock::engine
