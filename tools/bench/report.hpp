// This file knows how a result is told: as text for people, as JSON for scripts.
#pragma once

#include "pair.hpp"

#include <string>

namespace bench {

std::string as_text(const Options& options, Result& result);
std::string as_json(const Options& options, Result& result);

}  // namespace bench
