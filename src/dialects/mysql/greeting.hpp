// What a server says of itself before anything is sent to it.
#pragma once

#include "types/clock.hpp"

#include <string_view>

namespace dlock::dialects::mysql {

enum class Greeting {
  incomplete,  // more of it is still to come
  offers_tls,
  without_tls,  // or not this protocol at all
  refusal,      // an error instead of a greeting: for the client library to read
};

// What the first bytes of a connection say: "Initial Handshake Packet" of the MySQL and MariaDB manuals.
Greeting read_greeting(std::string_view bytes);

// Waits for the greeting on a connected socket and looks at it without taking it from there, so that whoever reads
// next finds all of it. `incomplete` if it did not come in time, or the server hung up.
Greeting peek_greeting(int socket, Deadline deadline);

}  // namespace dlock::dialects::mysql
