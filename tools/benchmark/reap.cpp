// How the reaper is timed beside a client, and told.
#include "reap.hpp"

#include "progress.hpp"
#include "report.hpp"
#include "samples.hpp"
#include "scratch.hpp"

#include <dlock/reaping.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <thread>

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr auto name = "dlock-bench/reap";

enum class Phase { warm_up, idle, waiting, removing, over };

// A client that locks all the time, and writes down what it waits in which phase. Its failure ends it, and is kept.
class Traffic {
 public:
  Traffic(const Target& target, ReapResult& result) : locks_(target.url, engine_options(target)), result_(result) {}
  ~Traffic() { turn_to(Phase::over); }

  void turn_to(Phase phase) noexcept { phase_ = phase; }
  void finish() {
    turn_to(Phase::over);
    thread_.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void run() {
    try {
      for (auto phase = phase_.load(); phase != Phase::over; phase = phase_) {
        const auto asked = now();
        auto lock = take(locks_, name);
        const auto granted = now();
        give_back(std::move(lock));
        if (phase == Phase::idle) result_.idle.add(granted - asked);
        if (phase == Phase::removing) result_.meanwhile.add(granted - asked);
      }
    } catch (...) { failure_ = std::current_exception(); }
  }

  dlock::Engine locks_;
  ReapResult& result_;
  std::atomic<Phase> phase_ = Phase::warm_up;
  std::exception_ptr failure_;
  std::jthread thread_{[this] { run(); }};
};

double rows_per_second(const ReapResult& result) {
  return result.took > 0 ? static_cast<double>(result.removed) / result.took : 0;
}

double p99_ratio(const ReapResult& result) {
  const auto idle = result.idle.percentile_us(99);
  return idle > 0 ? result.meanwhile.percentile_us(99) / idle : 0;
}

std::string line(std::string_view when, const Record& record) {
  return fmt::format("acquire {:<13}{:>9} times   p50 {:7.1f} us   p99 {:8.1f} us   max {:9.1f} us\n", when,
                     record.count(), record.percentile_us(50), record.percentile_us(99), record.percentile_us(100));
}

}  // namespace

ReapResult run_reap(const ReapOptions& options) {
  ReapResult result;
  result.setup = setup_of(options.target);
  Progress progress("reap", options.target.quiet);
  Scratch table(options.target, "dlock_bench_reap");
  table.fill(options.rows, progress);
  auto reaper_options = engine_options(table.target());
  reaper_options.reaper.grace = 500ms;  // nobody else uses this table
  reaper_options.reaper.retention = 1h;
  dlock::Engine reaper(table.target().url, reaper_options);
  Traffic traffic(table.target(), result);
  progress.say("without the reaper");
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds / 4));
  traffic.turn_to(Phase::idle);
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  traffic.turn_to(Phase::waiting);
  auto begin = Clock::time_point::max();
  dlock::Reaping reaping;
  reaping.progress = [&](const dlock::ReapProgress& far) {
    if (far.phase == dlock::ReapProgress::Phase::grace && far.left > 0s) {
      // With its end removing begins.
      begin = std::min(begin, Clock::now() + far.left);
    } else if (far.phase == dlock::ReapProgress::Phase::removing) {
      begin = std::min(begin, Clock::now());
      traffic.turn_to(Phase::removing);
      progress.say(fmt::format("{} of {} rows removed", far.done, far.total));
    }
  };
  result.removed = reaper.reap_all(reaping).removed;
  const auto end = Clock::now();
  traffic.finish();
  result.took = std::chrono::duration<double>(end - std::min(begin, end)).count();
  if (result.removed == 0) throw std::runtime_error("the reaper removed nothing");
  return result;
}

std::string as_text(const ReapOptions& options, const ReapResult& result) {
  return title("reap", result.setup, fmt::format("{} idle rows", options.rows)) +
         fmt::format("{} rows removed in {:.2f} s: {:.0f} rows/s\n", result.removed, result.took,
                     rows_per_second(result)) +
         line("idle", result.idle) + line("meanwhile", result.meanwhile) +
         fmt::format("meanwhile / idle (p99 of an acquire): {:.2f}\n", p99_ratio(result));
}

std::string as_json(const ReapOptions& options, const ReapResult& result) {
  auto json = head("reap", result.setup);
  json["threads"] = 1;
  json["seconds"] = options.seconds;
  json["rows"] = options.rows;
  json["removed"] = result.removed;
  json["removing_s"] = result.took;
  json["rows_per_second"] = rows_per_second(result);
  json["idle"] = spread(result.idle);
  json["meanwhile"] = spread(result.meanwhile);
  json["p99_ratio"] = p99_ratio(result);
  return dumped(json);
}

Plot as_plot(const ReapOptions&, const ReapResult& result) {
  Plot plot;
  plot.title = fmt::format("reap: acquire, {}", result.setup.database);
  plot.curves = {{"idle", result.idle}, {"while rows are removed", result.meanwhile}};
  return plot;
}

}  // namespace bench
