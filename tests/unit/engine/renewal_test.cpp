// When leases are renewed: each past a third of its own length, together, and not in step with others.
#include "engine/lease_renewer_bench.hpp"

#include <doctest/doctest.h>

#include <memory>

using namespace std::chrono_literals;
using namespace dlock::test;
using dlock::BootClock;
using dlock::Instant;
using dlock::later;
using dlock::engine::renewal_window;
using dlock::engine::retry_window;

namespace {

dlock::engine::LeaseTerms lease_of(dlock::Duration lease) {
  dlock::engine::LeaseTerms terms;
  terms.lease = lease;
  return terms;
}

}  // namespace

TEST_CASE("a lease is due past a third of its own length, and before half of it") {
  const Instant sent{1h};
  for (const dlock::Duration lease : {300000us, 1000000us, 30000000us, 3600000000us})
    for (const double share : {0.5, 0.75, 1.0}) {
      const auto window = renewal_window(sent, lease, {}, share);
      CHECK(window.earliest - sent >= lease / 3);
      CHECK(window.latest >= window.earliest);
      CHECK(window.latest - sent < lease / 2);
    }
  CHECK(renewal_window(sent, 30s, {}, 0.5).latest < renewal_window(sent, 30s, {}, 1.0).latest);
}

TEST_CASE("a chosen pace is kept, or a little better") {
  const Instant sent{1h};
  for (const double share : {0.5, 1.0}) {
    const auto window = renewal_window(sent, 1h, 100ms, share);
    CHECK(window.earliest - sent >= 75ms);
    CHECK(window.latest - sent <= 100ms);
    CHECK(window.latest >= window.earliest);
  }
}

TEST_CASE("a lease that only a release ends is asked for every ten seconds, unless a pace was chosen") {
  const Instant sent{1h};
  for (const double share : {0.5, 1.0}) {
    CHECK(renewal_window(sent, dlock::until_released, {}, share).latest - sent <= 10s);
    CHECK(renewal_window(sent, dlock::until_released, 1min, share).latest - sent > 10s);
    CHECK(renewal_window(sent, dlock::until_released - 1us, {}, share).latest - sent > 1h);
  }
}

TEST_CASE("after a failure a lease is asked for again within a tenth of its length, and within a second") {
  const Instant now{1h};
  for (const dlock::Duration lease : {300000us, 1000000us, 30000000us, 3600000000us})
    for (const double share : {0.5, 1.0}) {
      const auto window = retry_window(now, lease, share);
      CHECK(window.earliest > now);
      CHECK(window.latest >= window.earliest);
      CHECK(window.latest - now <= std::min<dlock::Duration>(1s, lease / 10));
    }
}

TEST_CASE("leases of all lengths are renewed each at its own pace, those that are due together in one statement") {
  RenewerBench bench;
  const auto brief = 2s * slowness();
  std::vector<std::shared_ptr<dlock::engine::Lease>> all;
  for (int i = 0; i < 300; ++i) {
    all.push_back(bench.hold("short/" + std::to_string(i), lease_of(brief)));
    all.push_back(bench.hold("long/" + std::to_string(i), lease_of(1h)));
  }
  const auto begun = BootClock::now();
  CHECK(reached([&] { return all[0]->trusted_until() > begun + brief * 3 / 2; }));  // renewed twice at least
  for (std::size_t i = 0; i < all.size(); i += 2) CHECK(all[i]->valid(BootClock::now()));
  CHECK(bench.rounds_of("long/0").empty());
  CHECK(reached([&] { return bench.rounds_of("short/0").back().names.size() == 300; }));
  for (const auto& held : all) bench.let_go(held);
}

TEST_CASE("a round has a third of the least trust in it at most, so that one that hangs leaves time for others") {
  RenewerBench bench(5s * slowness());
  const auto third = 1s * slowness();
  const auto brief = bench.hold("brief", lease_of(3 * third));
  const auto lasting = bench.hold("lasting", [] {
    auto terms = lease_of(1h);
    terms.renew_every = 100ms;
    return terms;
  }());
  REQUIRE(reached([&] { return !bench.rounds_of("brief").empty(); }));
  CHECK(bench.rounds_of("brief").front().patience <= third);
  REQUIRE_FALSE(bench.rounds_of("lasting").empty());
  CHECK(bench.rounds_of("lasting").front().patience > third);
  CHECK(bench.rounds_of("lasting").front().patience <= 5 * third);
  bench.let_go(brief);
  bench.let_go(lasting);
}

TEST_CASE("processes whose leases were granted at the same moment do not renew them at the same moment") {
  std::vector<std::unique_ptr<RenewerBench>> processes;
  std::vector<std::shared_ptr<dlock::engine::Lease>> held;
  for (int i = 0; i < 12; ++i) processes.push_back(std::make_unique<RenewerBench>());
  for (auto& process : processes) held.push_back(process->hold("n", lease_of(3s)));
  std::vector<dlock::Instant> left;
  for (auto& process : processes) {
    REQUIRE(reached([&] { return !process->rounds_of("n").empty(); }));
    left.push_back(process->rounds_of("n").front().at);
  }
  // Spread over a sixteenth of the lease: twelve within a tenth of that do not happen by chance.
  CHECK(*std::max_element(left.begin(), left.end()) - *std::min_element(left.begin(), left.end()) > 18ms);
  for (std::size_t i = 0; i < held.size(); ++i) processes[i]->let_go(held[i]);
}

TEST_CASE("what is left to free does not hold up renewals, and one refusal not the others") {
  RenewerBench bench;
  auto terms = lease_of(1h);
  terms.renew_every = 50ms;
  const auto gone = bench.hold("gone", terms), kept = bench.hold("kept", terms);
  REQUIRE(bench.table->force_release("gone", gone->token(), {}, dlock::Deadline::max()));
  const auto trusted = kept->trusted_until();
  CHECK(reached([&] { return kept->trusted_until() > trusted && gone->lost().stop_requested(); }));
  CHECK(gone->loss() == dlock::Loss::forced);
  CHECK_FALSE(kept->loss());
  bench.let_go(kept);
}
