// How a try in vain is timed, and told.
#include "busy.hpp"

#include "progress.hpp"
#include "report.hpp"
#include "samples.hpp"
#include "turns.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

namespace bench {
namespace {

constexpr auto name = "dlock-bench/busy";
constexpr int most_rounds = 20;

// Times `work` for so long, after a warm-up.
template <class Work>
void repeat(Record& record, double seconds, Work work) {
  const auto in = [](double length) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(length));
  };
  const auto from = Clock::now() + in(seconds / 4), to = from + in(seconds);
  while (Clock::now() < from) work();
  auto begin = Clock::now();
  do {
    work();
    const auto end = Clock::now();
    record.add(std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count());
    begin = end;
  } while (begin < to);
}

std::int64_t median(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

double over_select(const Record& record, const BusyResult& result) {
  const auto select = result.select.percentile_us(50);
  return select > 0 ? record.percentile_us(50) / select : 0;
}

std::string line(std::string_view who, const Record& record) {
  return fmt::format("{:<7}{:>9} times   p50 {:7.1f} us   p99 {:7.1f} us\n", who, record.count(),
                     record.percentile_us(50), record.percentile_us(99));
}

}  // namespace

BusyResult run_busy(const BusyOptions& options) {
  BusyResult result;
  result.setup = setup_of(options.target);
  dlock::Engine holder(options.target.url, engine_options(options.target));
  // Nobody renews it meanwhile: a renewal writes.
  dlock::LockOptions hold;
  hold.lease = std::chrono::duration_cast<dlock::Duration>(std::chrono::duration<double>(10 * options.seconds)) +
               std::chrono::minutes{10};
  hold.renew = false;
  auto lock = holder.try_lock(name, hold);
  if (!lock) throw std::runtime_error(fmt::format("the lock \"{}\" is held by somebody else", name));
  const auto log = raw_peer(options.target);
  Progress progress("busy", options.target.quiet);
  const std::size_t contenders = options.raw ? 3 : 2;
  const auto rounds = rounds_for(options.seconds, contenders, most_rounds);
  const auto each = options.seconds / rounds / static_cast<double>(contenders);
  for (int i = 0; i < rounds; ++i) {
    progress.part(static_cast<double>(i) / rounds);
    {
      dlock::Engine locks(options.target.url, engine_options(options.target));
      const auto before = log->end_of_log();
      repeat(result.dlock, each, [&] {
        if (locks.try_lock(name)) throw std::runtime_error("a lock that was held was granted");
      });
      result.log_bytes.push_back(log->end_of_log() - before);
    }
    const auto peer = raw_peer(options.target);
    repeat(result.select, each, [&] { peer->read(name); });
    if (!options.raw) continue;
    const auto raw = raw_peer(options.target);
    repeat(result.raw, each, [&] {
      if (raw->acquire(name, std::string(32, '0')) != 0) throw std::runtime_error("a lock that was held was granted");
    });
  }
  give_back(std::move(*lock));
  return result;
}

std::string as_text(const BusyOptions& options, const BusyResult& result) {
  auto text = title("busy", result.setup, fmt::format("{:g} s", options.seconds));
  text += line("dlock", result.dlock) + line("select", result.select);
  if (options.raw) text += line("raw", result.raw);
  const auto quiet = std::count(result.log_bytes.begin(), result.log_bytes.end(), 0);
  text += fmt::format("bytes of log while dlock tried: {} (median of {} rounds, {} of them 0)\n",
                      median(result.log_bytes), result.log_bytes.size(), quiet);
  return text + fmt::format("dlock / select (medians): {:.3f}\n", over_select(result.dlock, result));
}

std::string as_json(const BusyOptions& options, const BusyResult& result) {
  auto json = head("busy", result.setup);
  json["threads"] = 1;
  json["seconds"] = options.seconds;
  json["dlock"] = spread(result.dlock);
  json["select"] = spread(result.select);
  json["ratio"] = over_select(result.dlock, result);
  if (options.raw) {
    json["raw"] = spread(result.raw);
    json["raw_ratio"] = over_select(result.raw, result);
  }
  json["log_bytes"] = median(result.log_bytes);
  json["rounds"] = result.log_bytes.size();
  json["rounds_without_log"] = std::count(result.log_bytes.begin(), result.log_bytes.end(), 0);
  return dumped(json);
}

Plot as_plot(const BusyOptions& options, const BusyResult& result) {
  Plot plot;
  plot.title = fmt::format("busy: a try on a held lock, {}", result.setup.database);
  plot.curves = {{"dlock", result.dlock}, {"select of the row", result.select}};
  if (options.raw) plot.curves.emplace_back("raw", result.raw);
  return plot;
}

}  // namespace bench
