// This file knows what a server says of itself before anything is sent to it.
#pragma once

#include "server.hpp"
#include "types/clock.hpp"

namespace dlock::dialects::DLOCK_DIALECT {

// Whether the server offers TLS: connects, reads its greeting, and hangs up without having sent a byte. For those who
// ask for TLS without checking certificates: Connector/C 3.3 would go on in the clear there, and say so to nobody.
// Throws Failure{refused} if there is no server, or no greeting in time.
bool offers_tls(const Server& server, Deadline deadline);

}  // namespace dlock::dialects::DLOCK_DIALECT
