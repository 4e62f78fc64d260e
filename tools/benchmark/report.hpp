// What the results of all scenarios are told with.
#pragma once

#include "record.hpp"
#include "target.hpp"

#include "tools/shared/json.hpp"

#include <string>
#include <string_view>

namespace bench {

// "pair on <database>, durable commits, <more>", the settings that make it so, and what forgets.
std::string title(std::string_view scenario, const Setup& setup, std::string_view more);

// format_version, scenario, database, durable, settings, weaknesses.
dlock::tools::Json head(std::string_view scenario, const Setup& setup);

// The mean, some percentiles, and the largest of the times; and with how many there are.
dlock::tools::Json percentiles(const Record& record);
dlock::tools::Json spread(const Record& record);

std::string dumped(const dlock::tools::Json& json);

}  // namespace bench
