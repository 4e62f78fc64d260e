// The promise that a run of the fault suite which has not done what it says fails: each kind of fault, by its name.
#include "fault/suite/campaign.hpp"
#include "fault/suite/nemesis.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

using namespace dlock::test;

namespace {

bool names(const std::vector<std::string>& troubles, const std::string& words) {
  return std::any_of(troubles.begin(), troubles.end(),
                     [&](const std::string& trouble) { return trouble.find(words) != std::string::npos; });
}

}  // namespace

TEST_CASE("a run that could not inflict a fault fails and names it, and one that succeeded at last does not count it") {
  int tries = 0;
  Plan plan;
  plan.lease = lease_of_tellers();
  plan.nemeses = [&](Victims& victims) {
    return std::vector<Nemesis>{{"pause", [&] { pause_past_lease(victims); }},
                                {"at the third try",
                                 [&] {
                                   if (++tries < 3) throw std::runtime_error("not yet");
                                 }},
                                {"impossible", [] { throw std::runtime_error("there is no such thing"); }}};
  };
  const auto report = run(plan);
  INFO(report.text());
  CHECK(report.violations.empty());
  CHECK(report.troubles.size() == 1);
  CHECK(names(report.troubles, "never inflicted: impossible: there is no such thing"));
  CHECK(report.faults.at("at the third try") == 1);
  CHECK(report.spared.at("at the third try").times == 2);
  CHECK_FALSE(report.faults.contains("impossible"));
  CHECK(report.faults.at("pause") > 0);
  CHECK(report.text().find("not inflicted: impossible: ") != std::string::npos);
}
