// The named locks of the server that an engine notifies with.
#pragma once

#include "connection.hpp"

#include <string>
#include <string_view>

namespace dlock::dialects::mysql {

// An engine holds one of a few named locks on a connection of its own. To notify, it takes the next one and then frees
// the one it had, on which everybody waits who listens. Whoever was slow finds a lock free that it believed to be held,
// and knows that it has missed something; a release signal that dies frees its lock, too.
inline constexpr int signals = 4;

// The name, as it stands in SQL. `engine` has been looked over by engine_of(), `table` is TableNames::channel().
std::string signal_name(std::string_view engine, std::string_view table, int number);

// The engine in the actor of a row; empty if that does not look like one.
std::string_view engine_of(std::string_view actor);

// The session lives, and waits, for as long as its client does.
void make_lasting(ServerConnection& connection, Deadline deadline);

}  // namespace dlock::dialects::mysql
