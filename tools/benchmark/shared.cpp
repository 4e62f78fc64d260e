// How the two halves of what is measured of readers are told together.
#include "shared.hpp"

#include "report.hpp"

#include <fmt/core.h>

namespace bench {

using dlock::tools::Json;

SharedResult run_shared(const SharedOptions& options) {
  SharedResult result{run_throughput(options.throughput)};
  if (options.renewal.leases > 0) result.renewal = run_renew(options.renewal);
  return result;
}

std::string as_text(const SharedOptions& options, const SharedResult& result) {
  auto text = as_text(options.throughput, result.throughput);
  if (result.renewal)
    text += fmt::format("renewal of {} readers of one name, {:g} s:\n{}", options.renewal.leases,
                        options.renewal.seconds, lines_of(*result.renewal));
  return text;
}

std::string as_json(const SharedOptions& options, const SharedResult& result) {
  auto json = json_of(options.throughput, result.throughput);
  json["renewal"] = Json();
  if (result.renewal) {
    auto renewal = Json::object();
    add_to(renewal, options.renewal, *result.renewal);
    json["renewal"] = renewal;
  }
  return dumped(json);
}

Plot as_plot(const SharedOptions& options, const SharedResult& result) {
  return as_plot(options.throughput, result.throughput);
}

}  // namespace bench
