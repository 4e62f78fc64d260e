// This file knows what the results of all scenarios are told with.
#pragma once

#include "record.hpp"
#include "target.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace bench {

// "pair on <database>, durable commits, <more>", the settings that make it so, and what forgets.
std::string title(std::string_view scenario, const Setup& setup, std::string_view more);

// format_version, scenario, database, durable, settings, weaknesses.
nlohmann::json head(std::string_view scenario, const Setup& setup);

// How many, and their percentiles.
nlohmann::json spread(const Record& record);

std::string dumped(const nlohmann::json& json);

}  // namespace bench
