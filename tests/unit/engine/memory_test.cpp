// A lack of memory for a moment, wherever it comes, leaves every lease kept, or its loss told.
#include "engine/lease_renewer_bench.hpp"
#include "support/allocations.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using namespace dlock::test;

namespace {

constexpr int leases = 200;  // more than what there always is room for

std::vector<std::shared_ptr<dlock::engine::Lease>> hold(RenewerBench& bench, const dlock::engine::LeaseTerms& terms) {
  std::vector<std::shared_ptr<dlock::engine::Lease>> all;
  for (int i = 0; i < leases; ++i)
    all.push_back(bench.hold("a name that is long enough to need memory " + std::to_string(i), terms));
  return all;
}

}  // namespace

TEST_CASE("leases go on being renewed, all of them, after a lack of memory at any point of a round") {
  if (!allocations_are_counted()) return;
  RenewerBench bench;
  dlock::engine::LeaseTerms terms;
  terms.lease = 4s * slowness();
  terms.renew_every = 10ms;
  const auto all = hold(bench, terms);
  for (long nth = 1; nth < 700; nth += nth < 40 ? 2 : 60) {
    CAPTURE(nth);
    refuse_allocations(nth, 4);
    REQUIRE(reached([] { return allocations_were_refused(); }));
    std::vector<dlock::Instant> before;
    for (const auto& held : all) before.push_back(held->trusted_until());
    for (std::size_t i = 0; i < all.size(); ++i) REQUIRE(reached([&] { return all[i]->trusted_until() > before[i]; }));
  }
  for (const auto& held : all) CHECK_FALSE(held->loss());
  for (const auto& held : all) bench.let_go(held);
}

TEST_CASE("every loss is told although there was no memory at the moment when trust ran out") {
  if (!allocations_are_counted()) return;
  for (long nth = 1; nth < 8; ++nth) {
    CAPTURE(nth);
    RenewerBench bench;
    dlock::engine::LeaseTerms terms;
    terms.lease = 200ms;
    terms.renew = false;
    const auto all = hold(bench, terms);
    std::vector<std::stop_token> lost;
    for (const auto& held : all) lost.push_back(held->lost());
    refuse_allocations(nth, 4);
    for (const auto& each : lost) REQUIRE(reached([&] { return each.stop_requested(); }));
    refuse_allocations(1, 0);
  }
}
