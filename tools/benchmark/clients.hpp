// How the clients of a contender are driven, a thread each.
#pragma once

#include "contender.hpp"
#include "throughput_round.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace bench {

// A turn of that length, which begins after a moment to warm up.
ThroughputRound round_of(double seconds);

// The round of each of so many clients, who begin one after another where there is a rate.
std::vector<ThroughputRound> rounds(const ThroughputRound& round, std::size_t clients);

// Lets all of them run, and waits. Throws what one of them threw.
std::vector<Times> run_clients(const std::vector<std::unique_ptr<Client>>& clients,
                               const std::vector<ThroughputRound>& rounds);

}  // namespace bench
