// What is written for Prometheus keeps to its text format.
#include "engine/counters.hpp"
#include "types/failure.hpp"

#include <dlock/error.hpp>
#include <dlock/prometheus.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

using namespace std::chrono_literals;
using dlock::Stats;

namespace {

Stats busy_engine() {
  dlock::engine::Counters counters;
  for (const dlock::Duration took : std::initializer_list<dlock::Duration>{50us, 100us, 3ms, 30ms})
    counters.waited.add(took);
  counters.waited.add(1h);
  counters.rounds.add(1'500us);
  Stats stats;
  stats.leases = 3;
  stats.waiting = {{"a \"name\"", 2}, {"b", 5}};
  stats.connections = {2, 2, 1, 4};
  stats.requests_in_flight = 5;
  stats.busy = 12;
  stats.batches = {4, 10};
  counters.lost.for_each([&](auto each, auto count) { stats.lost.emplace(each, count + 1); });
  counters.retried.for_each([&](auto each, auto) { stats.retried.emplace(each, static_cast<std::uint64_t>(each)); });
  stats.waited = counters.waited.read();
  stats.rounds = counters.rounds.read();
  return stats;
}

bool says(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

constexpr std::string_view odd_name = "it's \"odd\\\nand\tlong ü {}=,";

}  // namespace

TEST_CASE("each number has a line, in seconds where it is a time, and buckets add up") {
  const auto text = dlock::prometheus_text("orders", busy_engine());
  CHECK(says(text, R"(dlock_leases{engine="orders"} 3)"));
  CHECK(says(text, R"(dlock_waiting_threads{engine="orders"} 7)"));
  CHECK(says(text, R"(dlock_waited_names{engine="orders"} 2)"));
  CHECK(says(text, R"(dlock_connections_in_use{engine="orders"} 1)"));
  CHECK(says(text, R"(dlock_busy_total{engine="orders"} 12)"));
  CHECK(says(text, R"(dlock_batched_requests_total{engine="orders"} 10)"));
  CHECK(says(text, R"(dlock_lost_total{engine="orders",loss="max_hold"} 1)"));
  CHECK(says(text, R"(dlock_retried_total{engine="orders",cause="disconnected"} 1)"));
  CHECK(says(text, R"(dlock_grant_seconds_bucket{engine="orders",le="0.0001"} 2)"));
  CHECK(says(text, R"(dlock_grant_seconds_bucket{engine="orders",le="0.0025"} 2)"));
  CHECK(says(text, R"(dlock_grant_seconds_bucket{engine="orders",le="0.005"} 3)"));
  CHECK(says(text, R"(dlock_grant_seconds_bucket{engine="orders",le="300"} 4)"));
  CHECK(says(text, R"(dlock_grant_seconds_bucket{engine="orders",le="+Inf"} 5)"));
  CHECK(says(text, R"(dlock_grant_seconds_count{engine="orders"} 5)"));
  CHECK(says(text, R"(dlock_grant_seconds_sum{engine="orders"} 3600.03315)"));
  CHECK(says(text, R"(dlock_renewal_round_seconds_sum{engine="orders"} 0.0015)"));
  CHECK(text.find("a \"name\"") == std::string::npos);  // there may be any number of names
}

TEST_CASE("every metric is described once, before all of its lines, and totals and only they end in _total") {
  const auto text = dlock::prometheus_text({{"one", busy_engine()}, {"two", Stats{}}});
  static const std::regex sample(R"re(([a-z_]+)\{engine="(one|two)"(,(le|loss|cause)="[^"]+")?\} [0-9.e+]+)re");
  static const std::regex type(R"(# TYPE ([a-z_]+) (gauge|counter|histogram))");
  std::set<std::string> described;
  std::map<std::string, std::string> types;
  std::string metric, line;
  for (std::istringstream lines(text); std::getline(lines, line);) {
    CAPTURE(line);
    std::smatch parts;
    if (line.starts_with("# HELP ")) {
      metric = line.substr(7, line.find(' ', 7) - 7);
      CHECK(described.insert(metric).second);
    } else if (std::regex_match(line, parts, type)) {
      CHECK(parts[1] == metric);
      types[metric] = parts[2];
      CHECK(metric.ends_with("_total") == (types[metric] == "counter"));
    } else {
      REQUIRE(std::regex_match(line, parts, sample));
      const auto suffix =
          parts[1].str().substr(0, metric.size()) == metric ? parts[1].str().substr(metric.size()) : "?";
      if (types[metric] == "histogram") CHECK((suffix == "_bucket" || suffix == "_sum" || suffix == "_count"));
      else CHECK(suffix.empty());
    }
  }
  CHECK(text.ends_with("\n"));
  CHECK(types.size() == described.size());
}

TEST_CASE("whatever an engine is called, its label is escaped; what is no text is refused") {
  const auto text = dlock::prometheus_text(odd_name, {});
  CHECK(says(text, "dlock_leases{engine=\"it's \\\"odd\\\\\\nand\tlong \xc3\xbc {}=,\"} 0"));
  const auto refused = [](const std::string& name) {
    try {
      dlock::prometheus_text(name, {});
    } catch (const dlock::Error& error) { return error.fault() == dlock::Fault::misuse; }
    return false;
  };
  CHECK(refused("\xff"));
  CHECK(refused(std::string(256, 'n')));
}

TEST_CASE("Prometheus' own parser for Python reads all of it") {
  // Another one may come first in the path than the system's, which has the system's packages.
  const auto knows_it = [](const std::string& python) {
    return std::system((python + " -c 'import prometheus_client.parser' 2>/dev/null").c_str()) == 0;
  };
  const std::string python = knows_it("python3") ? "python3" : "/usr/bin/python3";
  REQUIRE_MESSAGE(knows_it(python), "the package python3-prometheus-client is not installed");
  char path[] = "/tmp/dlock-prometheus-XXXXXX";
  const int file = ::mkstemp(path);
  REQUIRE(file >= 0);
  std::ofstream(path) << dlock::prometheus_text({{std::string(odd_name), busy_engine()}, {"two", Stats{}}});
  const std::string script =
      "import sys; from prometheus_client.parser import text_string_to_metric_families as parse; "
      "families = list(parse(open(sys.argv[1]).read())); "
      "samples = [s for f in families for s in f.samples]; "
      "types = {f.name: f.type for f in families}; "
      "assert types['dlock_busy'] == 'counter' and types['dlock_leases'] == 'gauge', types; "
      "assert types['dlock_grant_seconds'] == 'histogram', types; "
      "assert 'unknown' not in types.values(), types; "
      "assert {s.labels['engine'] for s in samples} == {sys.argv[2], 'two'}; "
      "[held] = [s.value for s in samples if s.name == 'dlock_leases' and s.labels['engine'] != 'two']; "
      "assert held == 3, held";
  const auto quoted = [](std::string_view text) {
    std::string word = "'";
    for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return word + "'";
  };
  CHECK(std::system((python + " -c " + quoted(script) + " " + path + " " + quoted(odd_name)).c_str()) == 0);
  std::remove(path);
}
