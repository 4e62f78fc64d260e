// This file knows how the result of "pair" is told.
#include "pair.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bench {
namespace {

double ratio(Result& result) { return percentile_us(result.dlock.pair, 50) / percentile_us(result.raw.pair, 50); }

std::string line(std::string_view who, Samples& samples) {
  return fmt::format("{:<6} {:>9} pairs   acquire {:7.1f} us   release {:7.1f} us   pair p50 {:7.1f} us   p99 {:7.1f} us\n", who,
                     samples.pair.size(), percentile_us(samples.acquire, 50), percentile_us(samples.release, 50),
                     percentile_us(samples.pair, 50), percentile_us(samples.pair, 99));
}

nlohmann::json contender(Samples& samples) {
  return {{"pairs", samples.pair.size()},
          {"acquire_p50_us", percentile_us(samples.acquire, 50)},
          {"release_p50_us", percentile_us(samples.release, 50)},
          {"pair_p50_us", percentile_us(samples.pair, 50)},
          {"pair_p99_us", percentile_us(samples.pair, 99)}};
}

}  // namespace

std::string as_text(const Options& options, Result& result) {
  auto text = fmt::format("pair on {}, {}, {:g} s\n", result.database,
                          result.weaknesses.empty() ? "durable commits" : "NOT durable", options.seconds);
  for (const auto& weakness : result.weaknesses) text += fmt::format("  {}\n", weakness);
  text += line("dlock", result.dlock);
  if (options.raw) text += line("raw", result.raw) + fmt::format("dlock / raw (medians): {:.3f}\n", ratio(result));
  return text;
}

std::string as_json(const Options& options, Result& result) {
  nlohmann::json json{{"format_version", 1},           {"scenario", "pair"},
                      {"database", result.database},   {"durable", result.weaknesses.empty()},
                      {"threads", 1},                  {"seconds", options.seconds},
                      {"dlock", contender(result.dlock)}};
  if (options.raw) {
    json["raw"] = contender(result.raw);
    json["ratio"] = ratio(result);
  }
  return json.dump(2) + "\n";
}

}  // namespace bench
