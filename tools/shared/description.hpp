// The hidden command that describes the command line, for the manual pages and the completions.
#pragma once

namespace dlock::tools {

class Command;
class Json;

// Adds `describe-cli`, which no help shows.
Command& add_description_command(Command& tool);

// Everything that is known of a command line, one object for the tool with one for each command in it.
Json described(const Command& command);

}  // namespace dlock::tools
