// This file knows how the result of "handoff" is told.
#include "handoff.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bench {
namespace {

std::string line(std::string_view who, Nanoseconds& samples) {
  return fmt::format("{:<28} {:>6} times   p50 {:9.1f} us   p99 {:9.1f} us   max {:9.1f} us", who, samples.size(),
                     percentile_us(samples, 50), percentile_us(samples, 99), percentile_us(samples, 100));
}

std::string line(std::string_view who, Handoff& handoff, double commit) {
  return line(who, handoff.acquired) + fmt::format("   p50 = {:.2f} commits, of it {:.1f} us in release\n",
                                                   percentile_us(handoff.acquired, 50) / commit,
                                                   percentile_us(handoff.release, 50));
}

nlohmann::json spread(Nanoseconds& samples) {
  return {{"times", samples.size()},
          {"p50_us", percentile_us(samples, 50)},
          {"p99_us", percentile_us(samples, 99)},
          {"max_us", percentile_us(samples, 100)}};
}

nlohmann::json contender(Handoff& handoff, double commit) {
  auto json = spread(handoff.acquired);
  json["p50_commits"] = percentile_us(handoff.acquired, 50) / commit;
  json["release_p50_us"] = percentile_us(handoff.release, 50);
  return json;
}

}  // namespace

std::string as_text(const HandoffOptions& options, HandoffResult& result) {
  auto text = fmt::format("handoff on {}, {}, {:g} s\n", result.database,
                          result.weaknesses.empty() ? "durable commits" : "NOT durable", options.seconds);
  for (const auto& weakness : result.weaknesses) text += fmt::format("  {}\n", weakness);
  const auto commit = percentile_us(result.commits, 50);
  text += line("one commit", result.commits) + "\n";
  text += line("release to acquired", result.listening, commit);
  text += line("the same, by polling only", result.polling, commit);
  text += line("a wait after its deadline", result.deadline) + "\n";
  text += line("a wait after a stop request", result.stop) + "\n";
  return text;
}

std::string as_json(const HandoffOptions& options, HandoffResult& result) {
  const auto commit = percentile_us(result.commits, 50);
  return nlohmann::json{{"format_version", 1},
                        {"scenario", "handoff"},
                        {"database", result.database},
                        {"durable", result.weaknesses.empty()},
                        {"seconds", options.seconds},
                        {"commit", spread(result.commits)},
                        {"listening", contender(result.listening, commit)},
                        {"polling", contender(result.polling, commit)},
                        {"deadline", spread(result.deadline)},
                        {"stop", spread(result.stop)},
                        {"early", result.early}}
             .dump(2) +
         "\n";
}

}  // namespace bench
