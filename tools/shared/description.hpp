// This file knows the hidden command that describes the command line, for the manual pages and the completions.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>

namespace dlock::tools {

// Adds `describe-cli`, which no help shows.
void add_description_command(CLI::App& app);
bool description_wanted(const CLI::App& app);

// Everything the parser knows, and the texts of its pages, one object for the tool with one for each command in it.
nlohmann::json described(const CLI::App& app);

}  // namespace dlock::tools
