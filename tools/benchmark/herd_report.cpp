// How the result of "herd" is told.
#include "herd.hpp"

#include "report.hpp"

#include <fmt/core.h>

namespace bench {
namespace {

using dlock::tools::Json;

std::string line(std::string_view when, const Rate& rate) {
  const auto statements =
      rate.statements ? fmt::format("{:8.1f} statements/s", *rate.statements) : "   (statements are not counted)";
  return fmt::format("{:<10}{}   {:9.0f} bytes of log/s   {:4} connections   {:5.1f} % of a processor\n", when,
                     statements, rate.bytes_written, rate.connections, 100 * rate.processor);
}

std::string line(std::string_view who, Nanoseconds& samples) {
  if (samples.empty()) return {};
  return fmt::format("{:<10}{:5} waited after the release   p50 {:9.1f} ms   p99 {:9.1f} ms   max {:9.1f} ms\n", who,
                     samples.size(), percentile_us(samples, 50) / 1e3, percentile_us(samples, 99) / 1e3,
                     percentile_us(samples, 100) / 1e3);
}

Json json_of(const Rate& rate) {
  return Json::object({{"statements_per_s", rate.statements ? Json(*rate.statements) : Json()},
                       {"log_bytes_per_s", rate.bytes_written},
                       {"connections", rate.connections},
                       {"processor", rate.processor}});
}

Json json_of(Nanoseconds& samples) {
  return Json::object({{"waiters", samples.size()},
                       {"p50_us", percentile_us(samples, 50)},
                       {"p99_us", percentile_us(samples, 99)},
                       {"max_us", percentile_us(samples, 100)}});
}

// Of one grant after the other, while all had it.
double each_us(const HerdResult& result) {
  const auto grants = result.threads.size() + result.processes.size();
  return grants == 0 ? 0 : result.all * 1e6 / static_cast<double>(grants);
}

}  // namespace

std::string as_text(const HerdOptions& options, HerdResult& result) {
  const auto commit = percentile_us(result.commits, 50);
  auto text = title("herd", result.setup,
                    fmt::format("{} threads of one process and {} processes, {}", options.threads, options.processes,
                                options.fifo ? "fifo" : "barging"));
  text += line("idle", result.idle) + line("held", result.held);
  text += line("threads", result.threads) + line("processes", result.processes);
  text += fmt::format(
      "all had it within {:.2f} s: {:.1f} us each = {:.2f} commits of {:.1f} us; at most {} in a row inside one "
      "process while another one waited\n",
      result.all, each_us(result), each_us(result) / commit, commit, result.longest_row);
  if (result.wrong.empty() && options.fifo) text += "all were granted in the order of their tickets\n";
  return text;
}

std::string as_json(const HerdOptions& options, HerdResult& result) {
  auto json = head("herd", result.setup);
  json["fifo"] = options.fifo;
  json["seconds"] = options.seconds;
  json["commit_p50_us"] = percentile_us(result.commits, 50);
  json["idle"] = json_of(result.idle);
  json["held"] = json_of(result.held);
  json["threads"] = json_of(result.threads);
  json["processes"] = json_of(result.processes);
  json["all_s"] = result.all;
  json["each_us"] = each_us(result);
  json["longest_row"] = result.longest_row;
  json["wrong"] = result.wrong;
  return dumped(json);
}

Plot as_plot(const HerdOptions&, HerdResult& result) {
  Plot plot;
  plot.title = fmt::format("herd: from the release to the grant, {}", result.setup.database);
  for (const auto& [who, samples] :
       {std::pair{"threads of one process", &result.threads}, {"processes", &result.processes}})
    if (!samples->empty()) plot.curves.emplace_back(who, record_of(*samples));
  return plot;
}

}  // namespace bench
