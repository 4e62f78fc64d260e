// How --help looks: a page that fits a terminal of 80 columns and 24 lines.
#pragma once

#include <string>
#include <vector>

namespace dlock::tools {

class Command;

// The page of a tool or of one of its commands.
std::string help_page(const Command& command);

// The ways to call it, as its pages show them.
std::vector<std::string> usage_of(const Command& command);

}  // namespace dlock::tools
