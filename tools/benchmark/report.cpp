// The words for a set-up.
#include "report.hpp"

#include <fmt/core.h>

namespace bench {

using dlock::tools::Json;

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

Json head(std::string_view scenario, const Setup& setup) {
  auto settings = Json::object();
  for (const auto& [name, value] : setup.settings) settings[name] = value;
  return Json::object({{"format_version", 1},
                       {"scenario", scenario},
                       {"database", setup.database},
                       {"durable", setup.durable()},
                       {"settings", settings},
                       {"weaknesses", setup.weaknesses}});
}

Json percentiles(const Record& record) {
  return Json::object({{"mean_us", record.mean_us()},
                       {"p50_us", record.percentile_us(50)},
                       {"p90_us", record.percentile_us(90)},
                       {"p99_us", record.percentile_us(99)},
                       {"p999_us", record.percentile_us(99.9)},
                       {"max_us", record.percentile_us(100)}});
}

Json spread(const Record& record) {
  auto json = percentiles(record);
  json["times"] = record.count();
  return json;
}

std::string dumped(const Json& json) { return json.text(2) + "\n"; }

}  // namespace bench
