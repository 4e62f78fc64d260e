// The fault suite finds what it is there to find: with the fence taken out, lost locks do write.
#include "fault/suite/campaign.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("without the fence, holders that are paused past their lease write under old tokens, and it is found") {
  const auto stale = [](const Report& report) {
    return std::any_of(report.violations.begin(), report.violations.end(),
                       [](const Violation& violation) { return violation.rule == Rule::stale_commit; });
  };
  Plan plan;
  plan.fenced = false;
  plan.lease = lease_of_tellers();
  plan.length = 120s * std::min(slowness(), 3);
  plan.paused_enough = stale;
  const auto report = run(plan);
  INFO(report.text());
  CHECK(stale(report));
  CHECK(report.troubles.empty());
  // Only the data are wrong: what the engine promises without a fence holds.
  for (const auto& violation : report.violations)
    CHECK_MESSAGE((violation.rule == Rule::stale_commit || violation.rule == Rule::sums_wrong),
                  to_string(violation.rule));
}
