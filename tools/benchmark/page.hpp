// This file knows how the pages of --help fit a terminal of 80 columns and 24 lines.
#pragma once

#include <CLI/CLI.hpp>

namespace bench {

// For this command and those that are added to it later.
void use_small_pages(CLI::App& app);

}  // namespace bench
