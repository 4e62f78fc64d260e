// How the result of "handoff" is told.
#include "handoff.hpp"

#include "report.hpp"

#include <fmt/core.h>

namespace bench {
namespace {

using dlock::tools::Json;

std::string line(std::string_view who, Nanoseconds& samples) {
  return fmt::format("{:<28} {:>6} times   p50 {:9.1f} us   p99 {:9.1f} us   max {:9.1f} us", who, samples.size(),
                     percentile_us(samples, 50), percentile_us(samples, 99), percentile_us(samples, 100));
}

std::string line(std::string_view who, Handoff& handoff, double commit, double paused) {
  const auto p50 = percentile_us(handoff.acquired, 50);
  return line(who, handoff.acquired) +
         fmt::format("   p50 = {:.2f} commits, {:.2f} after a pause; of it {:.1f} us in release\n", p50 / commit,
                     p50 / paused, percentile_us(handoff.release, 50));
}

Json spread(Nanoseconds& samples) {
  return Json::object({{"times", samples.size()},
                       {"p50_us", percentile_us(samples, 50)},
                       {"p99_us", percentile_us(samples, 99)},
                       {"max_us", percentile_us(samples, 100)}});
}

Json contender(Handoff& handoff, double commit, double paused) {
  auto json = spread(handoff.acquired);
  json["p50_commits"] = percentile_us(handoff.acquired, 50) / commit;
  json["p50_paused_commits"] = percentile_us(handoff.acquired, 50) / paused;
  json["release_p50_us"] = percentile_us(handoff.release, 50);
  return json;
}

}  // namespace

std::string as_text(const HandoffOptions& options, HandoffResult& result) {
  auto text = title("handoff", result.setup, fmt::format("{:g} s", options.seconds));
  const auto commit = percentile_us(result.commits, 50), paused = percentile_us(result.paused_commits, 50);
  text += line("one commit after another", result.commits) + "\n";
  text += line("one commit after a pause", result.paused_commits) + "\n";
  text += line("release to acquired", result.listening, commit, paused);
  text += line("the same, by polling only", result.polling, commit, paused);
  text += line("a wait after its deadline", result.deadline) + "\n";
  text += line("a wait after a stop request", result.stop) + "\n";
  return text;
}

std::string as_json(const HandoffOptions& options, HandoffResult& result) {
  const auto commit = percentile_us(result.commits, 50), paused = percentile_us(result.paused_commits, 50);
  auto json = head("handoff", result.setup);
  json["seconds"] = options.seconds;
  json["commit"] = spread(result.commits);
  json["paused_commit"] = spread(result.paused_commits);
  json["listening"] = contender(result.listening, commit, paused);
  json["polling"] = contender(result.polling, commit, paused);
  json["deadline"] = spread(result.deadline);
  json["stop"] = spread(result.stop);
  json["early"] = result.early;
  return dumped(json);
}

Plot as_plot(const HandoffOptions&, HandoffResult& result) {
  Plot plot;
  plot.title = fmt::format("handoff: release to acquired, {}", result.setup.database);
  plot.curves = {{"the waiter listens", record_of(result.listening.acquired)},
                 {"it polls", record_of(result.polling.acquired)},
                 {"one commit", record_of(result.commits)}};
  return plot;
}

}  // namespace bench
