// The scenario "renew": how long it takes an engine to renew all the leases that it holds.
#pragma once

#include "plot.hpp"
#include "record.hpp"
#include "target.hpp"

#include "tools/shared/json.hpp"

#include <cstddef>
#include <optional>
#include <string>

namespace bench {

struct RenewOptions {
  Target target{};
  double seconds = 10;
  std::size_t leases = 10'000;
  bool shared = false;  // of one name, by readers; else each of a name of its own
};

struct RenewResult {
  Setup setup;
  Record rounds;                       // from the sending of a round to the last lease that trusts its answer
  std::size_t renewed = 0, least = 0;  // leases, in all rounds together, and in the one with the fewest
  // That the server was sent meanwhile, for each round that the engine counted; empty: the database counts none.
  std::optional<double> statements{};
};

// In a table of its own.
RenewResult run_renew(const RenewOptions& options);

// What there is to tell but the title, and the head.
std::string lines_of(const RenewResult& result);
void add_to(dlock::tools::Json& json, const RenewOptions& options, const RenewResult& result);

std::string as_text(const RenewOptions& options, const RenewResult& result);
std::string as_json(const RenewOptions& options, const RenewResult& result);
Plot as_plot(const RenewOptions& options, const RenewResult& result);

}  // namespace bench
