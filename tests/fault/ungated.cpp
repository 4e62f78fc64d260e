// The fault suite finds what it is there to find: with the gate's second look taken out, there are too many permits.
//
// Only in a build with planted faults (tests/mutants/list): without one it must find nothing.
#include "fault/suite/campaign.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("whoever comes in beside others is counted behind the gate, while holders are paused past their leases") {
  Plan plan;
  plan.lease = lease_of_tellers();
  plan.length = 40s;
  plan.paused_enough = [](const Report& report) { return !report.violations.empty(); };
  const auto report = run(plan);
  INFO(report.text());
  CHECK(report.troubles.empty());
  CHECK(report.count(What::work) > 0);
  CHECK(report.violations.empty());
}
