// This file knows the words for a set-up.
#include "report.hpp"

#include <fmt/format.h>

namespace bench {

std::string title(std::string_view scenario, const Setup& setup, std::string_view more) {
  auto text = fmt::format("{} on {}, {}, {}\n", scenario, setup.database,
                          setup.durable() ? "durable commits" : "NOT durable", more);
  std::string settings;
  for (const auto& [name, value] : setup.settings)
    settings += fmt::format("{}{} {}", settings.empty() ? "  " : ", ", name, value.empty() ? "(empty)" : value);
  if (!settings.empty()) text += settings + "\n";
  for (const auto& weakness : setup.weaknesses) text += fmt::format("  {}\n", weakness);
  return text;
}

nlohmann::json head(std::string_view scenario, const Setup& setup) {
  auto settings = nlohmann::json::object();
  for (const auto& [name, value] : setup.settings) settings[name] = value;
  return {{"format_version", 1},        {"scenario", scenario}, {"database", setup.database},
          {"durable", setup.durable()}, {"settings", settings}, {"weaknesses", setup.weaknesses}};
}

nlohmann::json spread(const Record& record) {
  return {{"times", record.count()},
          {"mean_us", record.mean_us()},
          {"p50_us", record.percentile_us(50)},
          {"p90_us", record.percentile_us(90)},
          {"p99_us", record.percentile_us(99)},
          {"p999_us", record.percentile_us(99.9)},
          {"max_us", record.percentile_us(100)}};
}

std::string dumped(const nlohmann::json& json) {
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace bench
