// This file knows the scenario "renew": how long it takes an engine to renew all the leases that it holds.
#pragma once

#include "plot.hpp"
#include "record.hpp"
#include "target.hpp"

#include <cstddef>
#include <string>

namespace bench {

struct RenewOptions {
  Target target{};
  double seconds = 10;
  std::size_t leases = 10'000;
};

struct RenewResult {
  Setup setup;
  Record rounds;                       // from the sending of a round to the last lease that trusts its answer
  std::size_t renewed = 0, least = 0;  // leases, in all rounds together, and in the one with the fewest
};

// In a table of its own.
RenewResult run_renew(const RenewOptions& options);

std::string as_text(const RenewOptions& options, const RenewResult& result);
std::string as_json(const RenewOptions& options, const RenewResult& result);
Plot as_plot(const RenewOptions& options, const RenewResult& result);

}  // namespace bench
