// The scenario "shared": readers of one name, how fast they come and go, and how those who stay are renewed.
#pragma once

#include "plot.hpp"
#include "renew.hpp"
#include "throughput.hpp"

#include <optional>
#include <string>

namespace bench {

struct SharedOptions {
  ThroughputOptions throughput{};
  RenewOptions renewal{};  // leases 0: it is left out
};

struct SharedResult {
  ThroughputResult throughput;
  std::optional<RenewResult> renewal{};
};

SharedResult run_shared(const SharedOptions& options);

std::string as_text(const SharedOptions& options, const SharedResult& result);
std::string as_json(const SharedOptions& options, const SharedResult& result);
Plot as_plot(const SharedOptions& options, const SharedResult& result);

}  // namespace bench
