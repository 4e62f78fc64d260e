// Why a lease was refused what was asked of it, as far as the row tells.
#pragma once

#include "engine/lease/lease.hpp"
#include "store/lock_table.hpp"
#include "types/clock.hpp"

#include <string>

namespace dlock::engine {

// For people. `loss` is changed where it is another than was thought. What cannot be looked into in time is refused all
// the same; without memory for words there are none.
std::string why_refused(store::LockTable& table, const Lease& held, const Deadline& deadline, Loss& loss) noexcept;

}  // namespace dlock::engine
