// This file knows how long a connection's socket is waited for.
#pragma once

#include "types/clock.hpp"

#include <libpq-fe.h>

namespace dlock::dialects::DLOCK_DIALECT {

// Waits until the socket has one of poll(2)'s `events`, or is broken, which libpq will then say.
// False: the deadline has passed.
bool wait_for(const PGconn* connection, short events, Deadline deadline);

}  // namespace dlock::dialects::DLOCK_DIALECT
