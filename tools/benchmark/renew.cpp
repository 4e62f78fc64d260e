// How a round of renewals is seen from outside: trust in a lease is counted from the moment at which its
// renewal was sent, so that the end of trust tells when that was.
#include "renew.hpp"

#include "progress.hpp"
#include "report.hpp"
#include "samples.hpp"
#include "scratch.hpp"
#include "taking.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

namespace bench {
namespace {

using namespace std::chrono_literals;
using dlock::tools::Json;

constexpr dlock::Duration lease = 10min, margin = 100ms, interval = 500ms;
// Leases of one round end together, as far as two clocks can be read at once; those of two rounds do not.
constexpr std::int64_t together = 20'000'000;
// No further lease of a round is told of after so long.
constexpr std::int64_t settling = 100'000'000;
constexpr auto look = std::chrono::microseconds{20};
// Leases that were taken one after the other come together in one round after some.
constexpr auto patience = 1min;

// When trust in it ends. Two readings: what comes between them and the clock can only make it later.
std::int64_t end_of_trust(const dlock::Lock& lock) {
  const auto read = [&] {
    const auto left = lock.remaining();
    return now() + std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
  };
  const auto once = read();
  return std::min(once, read());
}

std::vector<dlock::Lock> take_all(dlock::Engine& locks, std::size_t count, bool shared) {
  constexpr std::size_t threads = 16;
  dlock::LockOptions options;
  options.lease = lease;
  options.renew_every = interval;
  if (shared) {
    options.mode = dlock::Mode::shared;
    options.reentrance = dlock::Reentrance::none;
    // Each waits for the row that the others write, too.
    return take_in_parallel(count, threads, [&](std::size_t) { return locks.lock("dlock-bench/renew", options); });
  }
  return take_in_parallel(count, threads, [&](std::size_t i) {
    auto lock = locks.try_lock(fmt::format("dlock-bench/renew/{:09}", i), options);
    if (!lock) throw std::runtime_error("a lock of a table of its own is held");
    return std::move(*lock);
  });
}

struct Round {
  std::int64_t took = 0;  // from its sending until the last lease trusted its answer
  std::size_t renewed = 0;
};

// Watches the next one that the first lease is in.
Round next_round(const std::vector<dlock::Lock>& locks) {
  const auto& first = locks.front();
  const auto before = end_of_trust(first);
  auto seen = before;
  while (seen - before < together) {
    first.check();
    std::this_thread::sleep_for(look);
    seen = end_of_trust(first);
  }
  const auto in_it = [&] {
    return static_cast<std::size_t>(std::count_if(
        locks.begin(), locks.end(), [&](const auto& lock) { return std::abs(end_of_trust(lock) - seen) < together; }));
  };
  // The renewer tells one lease after the other; it may be held up in between.
  Round round;
  auto over = now();
  for (auto looked = over; round.renewed < locks.size() && looked - over < settling;
       std::this_thread::sleep_for(look)) {
    looked = now();
    const auto count = in_it();
    if (count == round.renewed) continue;
    round.renewed = count;
    over = looked;
  }
  round.took = over - (seen - std::chrono::duration_cast<std::chrono::nanoseconds>(lease - margin).count());
  return round;
}

double per_second(const RenewResult& result) {
  const auto seconds = result.rounds.mean_us() * static_cast<double>(result.rounds.count()) / 1e6;
  return seconds > 0 ? static_cast<double>(result.renewed) / seconds : 0;
}

}  // namespace

RenewResult run_renew(const RenewOptions& options) {
  RenewResult result;
  result.setup = setup_of(options.target);
  Progress progress("renew", options.target.quiet);
  Scratch table(options.target, "dlock_bench_renew");
  auto engine = engine_options(table.target());
  engine.margin = margin;
  engine.timeouts.request = 1min;
  dlock::Engine locks(table.target().url, engine);
  progress.say(fmt::format("taking {} leases", options.leases));
  auto all = take_all(locks, options.leases, options.shared);
  progress.say("waiting until all leases are in one round");
  for (const auto end = Clock::now() + patience; next_round(all).renewed < all.size() && Clock::now() < end;) {}
  const auto peer = raw_peer(table.target());
  const auto before = peer->load();
  const auto counted = locks.stats().rounds.count();
  const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
  result.least = all.size();
  do {
    progress.say(fmt::format("{} rounds", result.rounds.count()));
    const auto round = next_round(all);
    result.rounds.add(round.took);
    result.renewed += round.renewed;
    result.least = std::min(result.least, round.renewed);
  } while (Clock::now() < end);
  const auto rounds = locks.stats().rounds.count() - counted;
  const auto after = peer->load();
  if (before.statements && after.statements && rounds > 0)  // one of them asked for the second number
    result.statements = static_cast<double>(*after.statements - *before.statements - 1) / static_cast<double>(rounds);
  for (auto& lock : all) lock.detach();  // the table goes
  return result;
}

std::string lines_of(const RenewResult& result) {
  return fmt::format(
      "{} rounds   p50 {:.1f} ms   p99 {:.1f} ms   at least {} leases in each   {}\n{:.0f} leases/s\n",
      result.rounds.count(), result.rounds.percentile_us(50) / 1e3, result.rounds.percentile_us(99) / 1e3, result.least,
      result.statements ? fmt::format("{:.2f} statements", *result.statements) : "(statements are not counted)",
      per_second(result));
}

void add_to(Json& json, const RenewOptions& options, const RenewResult& result) {
  json["leases"] = options.leases;
  json["least_leases_in_a_round"] = result.least;
  json["statements_in_a_round"] = result.statements ? Json(*result.statements) : Json();
  json["dlock"] = spread(result.rounds);
  json["dlock"]["leases_per_second"] = per_second(result);
}

std::string as_text(const RenewOptions& options, const RenewResult& result) {
  return title("renew", result.setup, fmt::format("{} leases, {:g} s", options.leases, options.seconds)) +
         lines_of(result);
}

std::string as_json(const RenewOptions& options, const RenewResult& result) {
  auto json = head("renew", result.setup);
  json["threads"] = 1;
  json["seconds"] = options.seconds;
  add_to(json, options, result);
  return dumped(json);
}

Plot as_plot(const RenewOptions& options, const RenewResult& result) {
  Plot plot;
  plot.title = fmt::format("renew: a round of {} leases, {}", options.leases, result.setup.database);
  plot.curves = {{"round", result.rounds}};
  return plot;
}

}  // namespace bench
