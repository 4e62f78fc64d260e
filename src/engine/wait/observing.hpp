// A wait for a name that is not to be locked.
#pragma once

#include "engine/context.hpp"
#include "engine/lease/late_attempts.hpp"
#include "engine/lease/lingering.hpp"
#include "engine/patience.hpp"

namespace dlock::engine {

// Threads: the calling one. False: out of patience. Fails: Error, where nobody could see whether it is free.
bool wait_free(Context& context, Lingering& lingering, LateAttempts& late_attempts, const Name& name,
               const Patience& patience);

}  // namespace dlock::engine
