// How the renewal of one lease is paused while all others go on.
#include "engine/lease_renewer_bench.hpp"

#include <doctest/doctest.h>

#include <future>

using namespace std::chrono_literals;
using namespace dlock::test;
using dlock::BootClock;
using dlock::later;

namespace {

constexpr dlock::Duration often = 20ms;

dlock::engine::LeaseTerms renewed_often() {
  dlock::engine::LeaseTerms terms;
  terms.lease = 1h;
  terms.renew_every = often;
  return terms;
}

}  // namespace

TEST_CASE("a lease that is paused is not renewed, the others are, and it is again once it is resumed") {
  RenewerBench bench;
  const auto held = bench.hold("paused", renewed_often());
  const auto other = bench.hold("other", renewed_often());
  REQUIRE(reached([&] { return !bench.rounds_of("paused").empty(); }));
  REQUIRE(bench.renewer.pause(held, later(BootClock::now(), 1min)));
  const auto before = bench.rounds_of("paused").size();
  const auto trusted = held->trusted_until();
  const auto others = bench.rounds_of("other").size();
  CHECK(reached([&] { return bench.rounds_of("other").size() > others + 5; }));
  CHECK(bench.rounds_of("paused").size() == before);
  CHECK(held->trusted_until() == trusted);
  bench.renewer.resume(held);
  CHECK(reached([&] { return held->trusted_until() > trusted; }));
  bench.let_go(held);
  bench.let_go(other);
}

TEST_CASE("a pause waits for the round that is under way, and no longer than asked") {
  RenewerBench bench;
  const auto held = bench.hold("n", renewed_often());
  bench.stuck = true;
  REQUIRE(reached([&] { return bench.under_way == 1; }));
  const auto deadline = later(BootClock::now(), 50ms);
  CHECK_FALSE(bench.renewer.pause(held, deadline));
  CHECK(BootClock::now() >= deadline);
  auto second = std::async(std::launch::async, [&] {
    const bool free = bench.renewer.pause(held, dlock::Deadline::max());
    CHECK_FALSE(bench.stuck);
    return free;
  });
  CHECK(second.wait_for(50ms) == std::future_status::timeout);
  bench.stuck = false;
  CHECK(second.get());
  const auto before = bench.rounds_of("n").size();
  // Counted: the first resume is not enough. Another lease shows that rounds go on.
  bench.renewer.resume(held);
  const auto other = bench.hold("other", renewed_often());
  CHECK(reached([&] { return bench.rounds_of("other").size() > 5; }));
  CHECK(bench.rounds_of("n").size() == before);
  bench.renewer.resume(held);
  CHECK(reached([&] { return bench.rounds_of("n").size() > before; }));
  bench.let_go(held);
  bench.let_go(other);
}

TEST_CASE("a lease whose round fails stays paused") {
  RenewerBench bench;
  const auto held = bench.hold("n", renewed_often());
  bench.stuck = true;
  REQUIRE(reached([&] { return bench.under_way == 1; }));
  bench.table->add_mishap(dlock::Cause::disconnected, true, false);
  auto free = std::async(std::launch::async, [&] { return bench.renewer.pause(held, dlock::Deadline::max()); });
  CHECK(free.wait_for(50ms) == std::future_status::timeout);
  bench.stuck = false;
  CHECK(free.get());
  const auto before = bench.rounds_of("n").size();
  const auto other = bench.hold("other", renewed_often());
  CHECK(reached([&] { return bench.rounds_of("other").size() > 5; }));
  CHECK(bench.rounds_of("n").size() == before);
  bench.renewer.resume(held);
  CHECK(reached([&] { return bench.rounds_of("n").size() > before; }));
  bench.let_go(held);
  bench.let_go(other);
}

TEST_CASE("a lease that is added anew while it is paused, or let go, is not renewed") {
  RenewerBench bench;
  const auto held = bench.hold("n", renewed_often());
  REQUIRE(bench.renewer.pause(held, dlock::Deadline::max()));
  const auto before = bench.rounds_of("n").size();
  bench.renewer.add(held);  // as an extension does
  const auto other = bench.hold("other", renewed_often());
  CHECK(reached([&] { return bench.rounds_of("other").size() > 5; }));
  bench.let_go(held);
  bench.renewer.resume(held);
  const auto others = bench.rounds_of("other").size();
  CHECK(reached([&] { return bench.rounds_of("other").size() > others + 5; }));
  CHECK(bench.rounds_of("n").size() == before);
  bench.let_go(other);
}

TEST_CASE("a lease that is paused past its trust is lost, and is told so") {
  RenewerBench bench;
  dlock::engine::LeaseTerms terms;
  terms.lease = 400ms * slowness();
  const auto held = bench.hold("n", terms);
  REQUIRE(bench.renewer.pause(held, dlock::Deadline::max()));
  CHECK(reached([&] { return held->lost().stop_requested(); }));
  CHECK(BootClock::now() >= held->trusted_until());
  CHECK(held->loss() == dlock::Loss::unconfirmed);
  bench.renewer.resume(held);
}
