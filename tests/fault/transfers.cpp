// The promise that a lost lock cannot write, whatever happens to processes, networks and servers.
//
// DLOCK_SOAK_SECONDS and DLOCK_SOAK_FAULTS make the run longer, and tell how it gets on: tools/dev/soak.
#include "fault/suite/campaign.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>

using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("fenced transfers stay in the order of tokens and keep every sum, while everything else goes wrong") {
  const char* seconds = std::getenv("DLOCK_SOAK_SECONDS");
  const char* faults = std::getenv("DLOCK_SOAK_FAULTS");
  const bool soak = seconds != nullptr || faults != nullptr;
  Plan plan;
  plan.lease = lease_of_tellers();
  plan.length = 5s;
  std::size_t told = 0;
  const Nanoseconds begun = boottime();
  if (seconds != nullptr) plan.length = std::chrono::seconds{std::stoll(seconds)};
  if (faults != nullptr) plan.faults = std::stoul(faults);
  if (soak) {
    plan.progress = [&](const Report& report) {
      constexpr Nanoseconds every = 10'000'000'000;
      if (const auto now = static_cast<std::size_t>((boottime() - begun) / every); now > told) {
        told = now;
        std::cout << now * 10 << " s: " << report.text() << std::flush;
      }
    };
  }
  const auto report = run(plan);
  if (soak) std::cout << "in the end: " << report.text() << std::flush;
  INFO(report.text());
  CHECK(report.violations.empty());
  CHECK(report.troubles.empty());
  CHECK(report.inflicted() >= plan.faults);
  for (const auto what : {What::commit, What::fault}) CHECK_MESSAGE(report.count(what) > 0, to_string(what));
  for (const auto& [what, times] : wanted) CHECK_MESSAGE(report.count(what) >= times, to_string(what));
}
