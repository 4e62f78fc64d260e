// Which rows name a job, before it is seen to wait.
#pragma once

#include "engine/session_id.hpp"
#include "types/clock.hpp"

namespace dlock::engine {

// Before a job is seen to wait, the rows of the grants that it has given away, or been given, say whose they are now:
// who follows the waits of others through them would find a deadlock that is none, or miss one. Throws Failure.
void put_rows_right(const JobRef& job, const Deadline& until);

}  // namespace dlock::engine
