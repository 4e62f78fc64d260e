// How two tables are measured in turns, and told.
#include "scale.hpp"

#include "helper.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "samples.hpp"
#include "scratch.hpp"
#include "taking.hpp"
#include "turns.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <random>

namespace bench {
namespace {

using dlock::tools::Json;

constexpr auto small_table = "dlock_bench_small", large_table = "dlock_bench_large";
constexpr std::int64_t few = 1000;
constexpr int most_rounds = 20;
constexpr std::size_t engines_a_process = 25;
constexpr char open = 'o', done = 'd';

// Holds leases [first, first + count) until it is killed: then the table is gone too.
void hold(Line& line, const Target& target, std::size_t engines, std::size_t first, std::size_t count) {
  line.hear(open);
  std::deque<dlock::Engine> all;
  for (std::size_t i = 0; i < engines; ++i) all.emplace_back(target.url, engine_options(target));
  const auto locks = take_in_parallel(count, engines, [&all, engines, first](std::size_t i) {
    return take(all[i % engines], fmt::format("dlock-bench/lease/{:09}", first + i));
  });
  line.say(done);
  line.hear();
}

// The processes that hold leases.
class Holders {
 public:
  explicit Holders(const ScaleOptions& options) {
    if (options.leases == 0) return;
    auto target = options.target;
    target.table = large_table;
    target.history_table.clear();
    const auto engines = std::min(options.engines, options.leases);
    const auto processes = (engines + engines_a_process - 1) / engines_a_process;
    for (std::size_t i = 0; i < processes; ++i) {
      const auto part = [&](std::size_t whole) { return whole * (i + 1) / processes - whole * i / processes; };
      helpers_.emplace_back([=, here = part(engines), first = options.leases * i / processes,
                             count = part(options.leases)](Line& line) { hold(line, target, here, first, count); });
    }
  }

  void begin() {
    for (auto& helper : helpers_) helper.line().say(open);
    for (auto& helper : helpers_) helper.line().hear(done);
  }

 private:
  std::deque<Helper> helpers_;
};

void measure(const Target& target, std::int64_t rows, double seconds, std::mt19937_64& random, Record& acquire,
             Record& pair) {
  dlock::Engine locks(target.url, engine_options(target));
  std::uniform_int_distribution<std::int64_t> any(0, rows - 1);
  const auto in = [](double length) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(length));
  };
  const auto from = Clock::now() + in(seconds / 4), to = from + in(seconds);
  for (auto begin = Clock::now(); begin < to || pair.count() == 0; begin = Clock::now()) {
    const auto name = row_name(any(random));
    const auto asked = now();
    auto lock = take(locks, name);
    const auto granted = now();
    give_back(std::move(lock));
    if (begin < from) continue;
    acquire.add(granted - asked);
    pair.add(now() - asked);
  }
}

double ratio(const ScaleResult& result) {
  const auto small = result.small_acquire.percentile_us(50);
  return small > 0 ? result.large_acquire.percentile_us(50) / small : 0;
}

Json json_of(std::int64_t rows, const Record& acquire, const Record& pair) {
  auto json = spread(acquire);
  json["rows"] = rows;
  json["acquire_p50_us"] = acquire.percentile_us(50);
  json["pair_p50_us"] = pair.percentile_us(50);
  return json;
}

std::string line(std::int64_t rows, const Record& acquire, const Record& pair) {
  return fmt::format("{:>9} rows {:>9} times   acquire p50 {:7.1f} us   p99 {:8.1f} us   pair p50 {:7.1f} us\n", rows,
                     acquire.count(), acquire.percentile_us(50), acquire.percentile_us(99), pair.percentile_us(50));
}

}  // namespace

ScaleResult run_scale(const ScaleOptions& options) {
  Holders holders(options);  // before anything that a fork would copy
  ScaleResult result;
  result.setup = setup_of(options.target);
  result.small_rows = std::min(few, options.rows);
  Progress progress("scale", options.target.quiet);
  Scratch small(options.target, small_table), large(options.target, large_table);
  small.fill(result.small_rows, progress);
  large.fill(options.rows, progress);
  progress.say("taking leases");
  holders.begin();
  std::mt19937_64 random{std::random_device{}()};
  const auto rounds = rounds_for(options.seconds, 2, most_rounds);
  const auto each = options.seconds / rounds / 2;
  for (int i = 0; i < rounds; ++i) {
    progress.part(static_cast<double>(i) / rounds);
    measure(small.target(), result.small_rows, each, random, result.small_acquire, result.small_pair);
    measure(large.target(), options.rows, each, random, result.large_acquire, result.large_pair);
  }
  progress.say("taking the tables away");
  return result;
}

std::string as_text(const ScaleOptions& options, const ScaleResult& result) {
  auto more = fmt::format("{:g} s", options.seconds);
  if (options.leases > 0) more += fmt::format(", {} leases held by {} engines", options.leases, options.engines);
  return title("scale", result.setup, more) + line(result.small_rows, result.small_acquire, result.small_pair) +
         line(options.rows, result.large_acquire, result.large_pair) +
         fmt::format("{} rows / {} rows (medians of an acquire): {:.3f}\n", options.rows, result.small_rows,
                     ratio(result));
}

std::string as_json(const ScaleOptions& options, const ScaleResult& result) {
  auto json = head("scale", result.setup);
  json["threads"] = 1;
  json["seconds"] = options.seconds;
  json["leases"] = options.leases;
  json["engines"] = options.leases == 0 ? 0 : options.engines;
  json["small"] = json_of(result.small_rows, result.small_acquire, result.small_pair);
  json["large"] = json_of(options.rows, result.large_acquire, result.large_pair);
  json["ratio"] = ratio(result);
  return dumped(json);
}

Plot as_plot(const ScaleOptions& options, const ScaleResult& result) {
  Plot plot;
  plot.title = fmt::format("scale: acquire, {}", result.setup.database);
  plot.curves = {{fmt::format("{} rows", result.small_rows), result.small_acquire},
                 {fmt::format("{} rows", options.rows), result.large_acquire}};
  return plot;
}

}  // namespace bench
