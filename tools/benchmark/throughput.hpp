// The scenarios "pair" (one client), "many" (N threads, N names), "hot" (N threads, one name), and "shared"
// and "semaphore" (the same, as readers, and with permits): who takes and gives back locks how fast.
#pragma once

#include "contender.hpp"
#include "plot.hpp"
#include "record.hpp"

#include "tools/shared/json.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace bench {

enum class Throughput { pair, many, hot, shared, semaphore };

struct ThroughputOptions {
  Throughput throughput{};
  Field field{};  // threads: 1 for a pair
  double seconds = 10;
  double rate = 0;  // pairs a second that all clients together shall begin; 0: each begins when its last one is done
  std::vector<std::size_t> in_flight{};  // dlock once more for each: so many requests of one thread
  std::vector<std::size_t> engines{};    // dlock once more for each: its threads in so many processes, an engine each
  std::vector<std::string> against{};
  bool by_statement = false;  // dlock once more, which passes nothing on in memory: "by_statement"
  dlock::Duration linger{};   // dlock once more, whose locks linger for so long: "linger"; 0: not
  bool one = false;           // beside it one client of dlock that has a lock alone: "one"
};

// What one contender did in all of its rounds.
struct Tally {
  std::string word;
  std::size_t clients = 1;
  // With a rate from the moment at which a pair was to begin: what a slow one holds up is counted too.
  Record acquire, release, pair;
  std::vector<double> rates;  // pairs a second, of each round
  // Bytes that the database's log grew by for each pair, in each round: all that was written there, by anybody. Empty
  // where it is not counted.
  std::vector<double> log_bytes;
};

struct ThroughputResult {
  Setup setup;
  std::string redis;              // its set-up, where it took part
  std::vector<Tally> contenders;  // dlock is the first
};

// Lets the contenders take turns, each turn on fresh connections: two connections to one server can differ by more than
// what is to be measured.
ThroughputResult run_throughput(const ThroughputOptions& options);

std::string as_text(const ThroughputOptions& options, const ThroughputResult& result);
dlock::tools::Json json_of(const ThroughputOptions& options, const ThroughputResult& result);
std::string as_json(const ThroughputOptions& options, const ThroughputResult& result);
Plot as_plot(const ThroughputOptions& options, const ThroughputResult& result);

}  // namespace bench
