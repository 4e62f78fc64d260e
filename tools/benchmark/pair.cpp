// This file knows how a pair is timed.
#include "pair.hpp"

#include "dialects/raw_peer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>

namespace bench {
namespace {

constexpr int slices = 20, warm_up = 50;
constexpr auto name = "dlock-bench/pair";

std::int64_t nanoseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count();
}

// Times `acquire` and `release` until the slice is over, after a few that warm up, which take no longer than it.
template <class Acquire, class Release>
void slice(Samples& samples, double seconds, Acquire acquire, Release release) {
  const std::chrono::duration<double> length(seconds);
  const auto warm = Clock::now() + length;
  for (int i = 0; i < warm_up && Clock::now() < warm; ++i) release(acquire());
  const auto end = Clock::now() + length;
  while (Clock::now() < end) {
    const auto begin = Clock::now();
    auto grant = acquire();
    const auto middle = Clock::now();
    release(std::move(grant));
    const auto after = Clock::now();
    samples.acquire.push_back(nanoseconds(begin, middle));
    samples.release.push_back(nanoseconds(middle, after));
    samples.pair.push_back(nanoseconds(begin, after));
  }
}

void dlock_slice(const Options& options, double seconds, Samples& samples) {
  dlock::Engine locks(options.target.url, engine_options(options.target));
  slice(samples, seconds, [&] { return take(locks, name); }, give_back);
}

void raw_slice(const Options& options, double seconds, Samples& samples) {
  const auto peer = dlock::dialects::raw_peer(options.target.url, options.target.table);
  const std::string owner = "00000000000000000000000000000000";
  slice(
      samples, seconds,
      [&] {
        const auto token = peer->acquire(name, owner);
        if (token == 0) throw std::runtime_error(fmt::format("the lock \"{}\" is held by somebody else", name));
        return token;
      },
      [&](std::int64_t token) { peer->release(name, owner, token); });
}

}  // namespace

Result run_pair(const Options& options) {
  Result result;
  result.weaknesses = weaknesses(options.target);
  result.database = dlock::dialects::raw_peer(options.target.url, options.target.table)->server();
  const double each = options.seconds / slices / (options.raw ? 2 : 1);
  for (int i = 0; i < slices; ++i) {
    if (::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\rpair: {} %", 100 * i / slices);
    dlock_slice(options, each, result.dlock);
    if (options.raw) raw_slice(options, each, result.raw);
  }
  if (::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r            \r");
  return result;
}

}  // namespace bench
