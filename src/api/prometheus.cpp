// Writes what engines have counted in the text format of Prometheus.
#include <dlock/prometheus.hpp>

#include "types/name.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

namespace dlock {
inline namespace v0 {
namespace {

constexpr std::size_t longest_label = 255;

std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
  return text;
}

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// Writes all of one metric before the next begins, as the format has it.
class Exposition {
 public:
  explicit Exposition(const std::map<std::string, Stats>& engines) {
    for (const auto& [name, stats] : engines) {
      check_text("the engine's name", name, longest_label);
      engines_.emplace_back(fmt::format("engine=\"{}\"", escaped(name)), &stats);
    }
  }

  template <class Value>
  void gauge(std::string_view name, std::string_view help, Value value) {
    head(name, "gauge", help);
    for (const auto& [label, stats] : engines_) line(name, label, std::invoke(value, *stats));
  }
  template <class Value>
  void total(std::string_view name, std::string_view help, Value value) {
    head(name, "counter", help);
    for (const auto& [label, stats] : engines_) line(name, label, std::invoke(value, *stats));
  }
  // One series for each of an enumeration.
  template <class Enum>
  void totals(std::string_view name, std::string_view help, std::string_view by,
              std::map<Enum, std::uint64_t> Stats::*values) {
    head(name, "counter", help);
    for (const auto& [label, stats] : engines_)
      for (const auto& [each, count] : stats->*values)
        line(name, fmt::format("{},{}=\"{}\"", label, by, to_string(each)), count);
  }
  void histogram(std::string_view name, std::string_view help, Histogram Stats::*values) {
    head(name, "histogram", help);
    for (const auto& [of, stats] : engines_) {
      const auto& label = of;
      const Histogram& histogram = stats->*values;
      std::uint64_t so_far = 0;
      const auto bucket = [&](std::size_t i, std::string_view bound) {
        so_far += histogram.counts[i];
        line(fmt::format("{}_bucket", name), fmt::format("{},le=\"{}\"", label, bound), so_far);
      };
      for (std::size_t i = 0; i < Histogram::bounds.size(); ++i)
        bucket(i, fmt::format("{}", seconds(Histogram::bounds[i])));
      bucket(Histogram::bounds.size(), "+Inf");
      line(fmt::format("{}_sum", name), label, seconds(histogram.sum));
      line(fmt::format("{}_count", name), label, so_far);
    }
  }

  std::string text() && { return std::move(text_); }

 private:
  void head(std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
  }
  template <class Value>
  void line(std::string_view name, std::string_view labels, Value value) {
    fmt::format_to(std::back_inserter(text_), "{}{{{}}} {}\n", name, labels, value);
  }

  std::vector<std::pair<std::string, const Stats*>> engines_;  // the label of each
  std::string text_;
};

std::uint64_t waiting(const Stats& stats) {
  std::uint64_t all = 0;
  for (const auto& [name, count] : stats.waiting) all += count;
  return all;
}

}  // namespace

std::string prometheus_text(const std::map<std::string, Stats>& engines) {
  Exposition all(engines);
  all.gauge("dlock_leases", "Leases held now.", &Stats::leases);
  all.gauge("dlock_waiting_threads", "Waits for a lock, of threads and of asynchronous calls.", waiting);
  all.gauge("dlock_waited_names", "Names that somebody waits for.",
            [](const Stats& stats) { return stats.waiting.size(); });
  all.gauge("dlock_requests_in_flight", "Requests that have no answer yet.", &Stats::requests_in_flight);
  all.gauge("dlock_connections", "Connections of the pool that are open.",
            [](const Stats& stats) { return stats.connections.open; });
  all.gauge("dlock_connections_in_use", "Connections of the pool that have a request.",
            [](const Stats& stats) { return stats.connections.in_use; });
  all.gauge("dlock_connections_limit", "The most connections that the pool opens.",
            [](const Stats& stats) { return stats.connections.limit; });
  all.gauge("dlock_connections_waited_for", "Threads that wait for a connection.",
            [](const Stats& stats) { return stats.connections.waited_for; });
  all.total("dlock_adopted_total", "Leases adopted.", &Stats::adopted);
  all.total("dlock_released_total", "Leases released.", &Stats::released);
  all.total("dlock_busy_total", "Tries that were answered busy.", &Stats::busy);
  all.total("dlock_timed_out_total", "Waits that ended on their deadline.", &Stats::timed_out);
  all.total("dlock_deadlocks_total", "Waits that were ended to break a deadlock.", &Stats::deadlocks);
  all.total("dlock_renewals_total", "Renewals of a lease that were confirmed.", &Stats::renewals);
  all.total("dlock_renewed_late_total", "Renewals that were confirmed long after they were due.", &Stats::renewed_late);
  all.total("dlock_abandoned_total", "Leases that the reaper found expired without release.", &Stats::abandoned);
  all.total("dlock_reconnected_total", "Connections opened again after a failure.", &Stats::reconnected);
  all.total("dlock_events_dropped_total", "Events that an observer did not get to in time.", &Stats::events_dropped);
  all.totals("dlock_lost_total", "Leases lost, by how.", "loss", &Stats::lost);
  all.totals("dlock_retried_total", "Requests sent again, by why.", "cause", &Stats::retried);
  all.total("dlock_batches_total", "Statements that carried several requests.",
            [](const Stats& stats) { return stats.batches.sent; });
  all.total("dlock_batched_requests_total", "Requests that shared a statement.",
            [](const Stats& stats) { return stats.batches.requests; });
  all.histogram("dlock_grant_seconds", "Time from the call to the grant of a lease.", &Stats::waited);
  all.histogram("dlock_renewal_round_seconds", "Time that a round of the renewer took.", &Stats::rounds);
  return std::move(all).text();
}

std::string prometheus_text(std::string_view engine, const Stats& stats) {
  return prometheus_text(std::map<std::string, Stats>{{std::string(engine), stats}});
}

}  // namespace v0
}  // namespace dlock
