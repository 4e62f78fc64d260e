// How a lease ends that may not be held for longer than LockOptions::max_hold.
#include "engine/core.hpp"
#include "engine/lease_renewer_bench.hpp"

#include <dlock/error.hpp>

#include <doctest/doctest.h>

using namespace std::chrono_literals;
using namespace dlock::test;
using dlock::BootClock;
using dlock::later;

namespace {

dlock::engine::LeaseTerms held_at_most(dlock::Duration lease, dlock::Duration max_hold) {
  dlock::engine::LeaseTerms terms;
  terms.lease = lease;
  terms.max_hold = max_hold;
  return terms;
}

}  // namespace

TEST_CASE("renewal stops in time for max_hold, with a warning, and then the lease is lost to it") {
  RenewerBench bench;
  const auto lease = 900ms * slowness(), most = 2000ms * slowness();
  const auto asked = BootClock::now();
  const auto held = bench.hold("n", held_at_most(lease, most));
  const auto granted = BootClock::now();
  REQUIRE(reached([&] { return held->lost().stop_requested(); }));
  CHECK(held->loss() == dlock::Loss::max_hold);
  CHECK_FALSE(bench.rounds_of("n").empty());
  CHECK(held->trusted_until() > later(asked, lease));  // it was renewed
  CHECK(held->trusted_until() < later(granted, most));
  REQUIRE(reached([&] { return !bench.told(dlock::Event::Kind::lost).empty(); }));
  CHECK(bench.told(dlock::Event::Kind::lost).front().text == "it was held as long as LockOptions::max_hold allows");
  REQUIRE(bench.told(dlock::Event::Kind::trust_low).size() == 1);
  CHECK(bench.told(dlock::Event::Kind::trust_low).front().took > dlock::Duration{});
}

TEST_CASE("a lease as long as max_hold is not renewed at all") {
  RenewerBench bench;
  const auto held = bench.hold("n", held_at_most(500ms, 500ms));
  REQUIRE(reached([&] { return held->lost().stop_requested(); }));
  CHECK(held->loss() == dlock::Loss::max_hold);
  CHECK(bench.rounds_of("n").empty());
}

TEST_CASE("a lease that cannot be renewed before max_hold is lost for that reason, not for max_hold") {
  RenewerBench bench;
  const auto held = bench.hold("n", held_at_most(600ms, 1h));
  bench.table->away = true;
  REQUIRE(reached([&] { return held->lost().stop_requested(); }));
  CHECK(held->loss() == dlock::Loss::unconfirmed);
}

TEST_CASE("max_hold cuts the engine's own lease short, and no extension goes beyond it") {
  dlock::EngineOptions engine;
  engine.lease = 2h;
  dlock::Core core(std::make_shared<FakeLockTable>(), engine);
  dlock::LockOptions options;
  options.max_hold = 1h;
  const auto held = core.acquire(dlock::Name("n"), options, {});
  REQUIRE(held);
  CHECK(held->terms().lease == 1h);
  try {
    core.extend(held, 61min);
    FAIL("it must throw");
  } catch (const dlock::Error& error) {
    CHECK(error.fault() == dlock::Fault::misuse);
    CHECK(std::string(error.what()).find("3660000000 us") != std::string::npos);
  }
  CHECK(held->valid(BootClock::now()));
  core.extend(held, 30min);
  CHECK(held->remaining(BootClock::now()) < 30min);
  CHECK(core.release(held, 1min) == dlock::Released::freed);
}
