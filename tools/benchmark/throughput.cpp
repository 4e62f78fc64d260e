// The turns of a throughput: who takes part, under which names, how often at most; and how the result is told. How many
// turns a time has: turns.hpp. How a client warms up, and its pairs are timed: clients.cpp.
#include "throughput.hpp"

#include "clients.hpp"
#include "engines.hpp"
#include "in_flight.hpp"
#include "progress.hpp"
#include "redis.hpp"
#include "report.hpp"
#include "samples.hpp"
#include "throughput_round.hpp"
#include "turns.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

namespace bench {
namespace {

using dlock::tools::Json;

void add(const std::vector<Times>& times, const ThroughputRound& round, Tally& tally) {
  auto end = round.to;
  std::uint64_t pairs = 0;
  for (const auto& client : times) {
    tally.acquire.add(client.acquire);
    tally.release.add(client.release);
    tally.pair.add(client.pair);
    pairs += client.pair.count();
    end = std::max(end, client.last);
  }
  tally.rates.push_back(static_cast<double>(pairs) / std::chrono::duration<double>(end - round.from).count());
}

// All clients of one contender, for `seconds`. How many pairs that were, those of the warm-up too.
std::uint64_t turn(const std::vector<std::unique_ptr<Client>>& clients, double seconds, double rate, Tally& tally) {
  auto round = round_of(seconds);
  round.rate = rate / static_cast<double>(clients.size());
  const auto times = run_clients(clients, rounds(round, clients.size()));
  add(times, round, tally);
  std::uint64_t pairs = 0;
  for (const auto& client : times) pairs += client.warm_ups + client.pair.count();
  return pairs;
}

void turn(Engines& engines, const std::vector<std::string>& names, double seconds, double rate, Tally& tally) {
  engines.open(names);
  auto round = round_of(seconds);
  round.rate = rate / static_cast<double>(names.size());
  add(engines.run(round), round, tally);
}

// Requests of one thread, for `seconds`.
void turn(InFlight& requests, double seconds, Tally& tally) {
  const auto round = round_of(seconds);
  std::vector<Times> times(1);
  requests.run(round, times.front());
  add(times, round, tally);
}

std::string_view word(Throughput throughput) {
  switch (throughput) {
    case Throughput::pair: return "pair";
    case Throughput::many: return "many";
    case Throughput::hot: return "hot";
    case Throughput::shared: return "shared";
    case Throughput::semaphore: return "semaphore";
  }
  return {};
}

std::vector<std::string> names(Throughput throughput, const Contender& contender) {
  if (contender.word == "one") return {"dlock-bench/one"};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < contender.clients; ++i)
    names.push_back(throughput == Throughput::many ? fmt::format("dlock-bench/many/{}", i)
                                                   : fmt::format("dlock-bench/{}", word(throughput)));
  return names;
}

// Opening a client of many takes a while.
int most_rounds(Throughput throughput) { return throughput == Throughput::pair ? 20 : 5; }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Who reads where the log ends, before a turn and after it; empty where that is not counted.
std::unique_ptr<RawPeer> log_of(const ThroughputOptions& options) {
  if (options.throughput != Throughput::pair) return nullptr;
  auto log = raw_peer(options.field.target);
  return log->counts_all_of_log() ? std::move(log) : nullptr;
}

// Whether it has rows in the lock table: the database's own locks store nothing, and Redis has a server of its own.
bool has_rows(std::string_view word) {
  constexpr std::array<std::string_view, 4> words{"dlock", "linger", "raw", "naive"};
  return std::find(words.begin(), words.end(), word) != words.end();
}

// dlock's against this one's: of a pair the time, of more clients what they get done. Under 1, and over 1, is dlock's
// win.
double ratio(Throughput throughput, const Tally& dlock, const Tally& peer) {
  const bool times = throughput == Throughput::pair;
  const auto ours = times ? dlock.pair.percentile_us(50) : median(dlock.rates);
  const auto theirs = times ? peer.pair.percentile_us(50) : median(peer.rates);
  return theirs > 0 ? ours / theirs : 0;
}

Json json_of(Throughput throughput, const Tally& tally) {
  auto json = percentiles(tally.pair);
  json["clients"] = tally.clients;
  json["pairs"] = tally.pair.count();
  json["pairs_per_second"] = median(tally.rates);
  json["acquire_p50_us"] = tally.acquire.percentile_us(50);
  json["acquire_p99_us"] = tally.acquire.percentile_us(99);
  json["release_p50_us"] = tally.release.percentile_us(50);
  json["release_p99_us"] = tally.release.percentile_us(99);
  if (throughput == Throughput::pair)
    json["log_bytes_per_pair"] = tally.log_bytes.empty() ? Json() : Json(median(tally.log_bytes));
  return json;
}

std::string log_line(const ThroughputResult& result) {
  std::string text;
  for (const auto& tally : result.contenders)
    if (!tally.log_bytes.empty())
      text += fmt::format("{}{} {:.0f}", text.empty() ? "bytes of log a pair: " : ", ", tally.word,
                          median(tally.log_bytes));
  return text.empty() ? text : text + " (medians of the turns)\n";
}

}  // namespace

ThroughputResult run_throughput(const ThroughputOptions& options) {
  std::vector<Contender> contenders{dlock_contender(options.field)};
  if (options.one) contenders.push_back(one_client(options.field));
  if (options.by_statement) contenders.push_back(by_statement(options.field));
  if (options.linger > dlock::Duration{}) contenders.push_back(lingering(options.field, options.linger));
  for (const auto count : options.in_flight) contenders.push_back({fmt::format("async{}", count), count, {}, true});
  for (const auto& word : options.against) contenders.push_back(peer(options.field, word));
  std::map<std::string, Engines> engines;  // they begin before anything is opened here
  for (const auto count : options.engines) {
    contenders.push_back({fmt::format("engines{}", count), std::max(options.field.threads, count)});
    engines.emplace(contenders.back().word, Engines(options.field, count));
  }
  ThroughputResult result;
  if (std::find(options.against.begin(), options.against.end(), "redis") != options.against.end())
    result.redis = redis_setup(options.field.redis);
  result.setup = setup_of(options.field.target);
  for (const auto& contender : contenders)
    result.contenders.push_back({contender.word, contender.clients, {}, {}, {}, {}, {}});
  Progress progress(std::string(word(options.throughput)), options.field.target.quiet);
  const auto log = log_of(options);
  const auto rounds = rounds_for(options.seconds, contenders.size(), most_rounds(options.throughput));
  const auto turns = static_cast<std::size_t>(rounds) * contenders.size();
  const auto each = options.seconds / static_cast<double>(turns);
  for (std::size_t i = 0; i < turns; ++i) {
    progress.part(static_cast<double>(i) / static_cast<double>(turns));
    const auto& contender = contenders[i % contenders.size()];
    auto& tally = result.contenders[i % contenders.size()];
    const auto own = names(options.throughput, contender);
    if (const auto found = engines.find(contender.word); found != engines.end()) {
      turn(found->second, own, each, options.rate, tally);
    } else if (contender.in_flight) {
      InFlight requests(options.field, own);
      turn(requests, each, tally);
    } else {
      const bool counts = log != nullptr && has_rows(contender.word);
      const auto before = counts ? log->end_of_log() : 0;
      const auto pairs = turn(contender.open(own), each, options.rate, tally);
      if (counts && pairs > 0)
        tally.log_bytes.push_back(static_cast<double>(log->end_of_log() - before) / static_cast<double>(pairs));
    }
  }
  return result;
}

std::string as_text(const ThroughputOptions& options, const ThroughputResult& result) {
  auto more =
      fmt::format("{} thread{}, {:g} s", options.field.threads, options.field.threads == 1 ? "" : "s", options.seconds);
  if (options.throughput == Throughput::semaphore) more += fmt::format(", {} permits", options.field.lock.limit);
  if (options.rate > 0) more += fmt::format(", {:g} pairs/s wanted", options.rate);
  auto text = title(word(options.throughput), result.setup, more);
  if (!result.redis.empty()) text += fmt::format("  {}\n", result.redis);
  for (const auto& tally : result.contenders)
    text += fmt::format(
        "{:<12}{:>5} client{} {:>9.0f} pairs/s   acquire {:8.1f} us   release {:8.1f} us   pair p50 {:8.1f} us   p99 "
        "{:8.1f} us\n",
        tally.word, tally.clients, tally.clients == 1 ? " " : "s", median(tally.rates), tally.acquire.percentile_us(50),
        tally.release.percentile_us(50), tally.pair.percentile_us(50), tally.pair.percentile_us(99));
  const auto& dlock = result.contenders.front();
  for (const auto& tally : result.contenders)
    if (&tally != &dlock)
      text += fmt::format("dlock / {} ({}, medians): {:.3f}\n", tally.word,
                          options.throughput == Throughput::pair ? "time of a pair" : "pairs per second",
                          ratio(options.throughput, dlock, tally));
  return text + log_line(result);
}

Json json_of(const ThroughputOptions& options, const ThroughputResult& result) {
  auto json = head(word(options.throughput), result.setup);
  json["threads"] = options.field.threads;
  json["seconds"] = options.seconds;
  if (options.rate > 0) json["rate"] = options.rate;
  if (!result.redis.empty()) json["redis_server"] = result.redis;
  auto ratios = Json::object();
  const auto& dlock = result.contenders.front();
  for (const auto& tally : result.contenders) {
    json[tally.word] = json_of(options.throughput, tally);
    if (&tally == &dlock) continue;
    ratios[tally.word] = ratio(options.throughput, dlock, tally);
    if (tally.word == "raw" || tally.word == "one") json["ratio"] = ratios[tally.word];
  }
  json["ratios"] = ratios;
  if (options.throughput == Throughput::semaphore) json["limit"] = options.field.lock.limit;
  return json;
}

std::string as_json(const ThroughputOptions& options, const ThroughputResult& result) {
  return dumped(json_of(options, result));
}

Plot as_plot(const ThroughputOptions& options, const ThroughputResult& result) {
  Plot plot;
  plot.title = fmt::format("{}: {}, {}", word(options.throughput), result.setup.database,
                           result.setup.durable() ? "durable commits" : "NOT durable");
  if (options.throughput != Throughput::pair) plot.title += fmt::format(", {} threads", options.field.threads);
  plot.unit = "pairs of acquire and release per second";
  for (const auto& tally : result.contenders) {
    if (options.throughput == Throughput::pair) plot.curves.emplace_back(tally.word, tally.pair);
    else plot.bars.emplace_back(fmt::format("{} ({})", tally.word, tally.clients), median(tally.rates));
  }
  return plot;
}

}  // namespace bench
