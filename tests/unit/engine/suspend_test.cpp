// What a suspend of the machine means to trust, to renewals and to waits: the clock has jumped, and
// nothing has run meanwhile.
#include "engine/core.hpp"
#include "engine/lease/boot_timer.hpp"
#include "engine/lease_renewer_bench.hpp"

#include <dlock/error.hpp>

#include <doctest/doctest.h>

#include <future>

using namespace std::chrono_literals;
using namespace dlock::test;
using dlock::BootClock;
using dlock::later;

namespace {

// The clock stays ahead: it never goes back.
void suspend(dlock::Duration length) {
  BootClock::ahead += std::chrono::nanoseconds{length}.count();
  dlock::engine::BootTimer::wake_all();
}

dlock::engine::LeaseTerms of_an_hour() {
  dlock::engine::LeaseTerms terms;
  terms.lease = 1h;
  return terms;
}

dlock::LockOptions lease_of_an_hour() {
  dlock::LockOptions options;
  options.lease = 1h;
  return options;
}

}  // namespace

TEST_CASE("a suspend past the lease ends trust at the first instruction, fires once, and nothing is renewed after it") {
  RenewerBench bench;
  const auto held = bench.hold("n", of_an_hour());
  REQUIRE(held->valid(BootClock::now()));
  suspend(1h);
  CHECK_FALSE(held->valid(BootClock::now()));
  CHECK(held->remaining(BootClock::now()) == dlock::Duration{});
  CHECK(held->loss() == dlock::Loss::unconfirmed);
  CHECK(reached([&] { return held->lost().stop_requested(); }));
  CHECK(reached([&] { return !bench.told(dlock::Event::Kind::lost).empty(); }));
  const auto other = bench.hold("other", [] {
    dlock::engine::LeaseTerms terms;
    terms.lease = 1h;
    terms.renew_every = 20ms;
    return terms;
  }());
  CHECK(reached([&] { return bench.rounds_of("other").size() > 3; }));
  CHECK(bench.rounds_of("n").empty());
  CHECK(bench.told(dlock::Event::Kind::lost).size() == 1);
  bench.let_go(other);
}

TEST_CASE("after a suspend that leaves some trust the renewer asks at once, and believes what it is told") {
  RenewerBench bench;
  const auto kept = bench.hold("kept", of_an_hour()), taken = bench.hold("taken", of_an_hour());
  REQUIRE(bench.table->force_release("taken", taken->token(), {}, dlock::Deadline::max()));
  const auto trusted = kept->trusted_until();
  bench.stuck = true;  // it asks so soon that it could have its answer before the next look
  suspend(50min);
  CHECK(kept->valid(BootClock::now()));
  CHECK(kept->remaining(BootClock::now()) < 10min);
  bench.stuck = false;
  CHECK(reached([&] { return kept->trusted_until() > trusted + 49min; }));
  CHECK(reached([&] { return taken->lost().stop_requested(); }));
  CHECK(taken->loss() == dlock::Loss::forced);
  CHECK_FALSE(kept->loss());
  bench.let_go(kept);
}

TEST_CASE("an answer that comes after trust has run out brings nothing back") {
  RenewerBench bench;
  dlock::engine::LeaseTerms terms;
  terms.lease = 1h;
  terms.renew_every = 20ms;
  const auto held = bench.hold("n", terms);
  bench.stuck = true;
  REQUIRE(reached([&] { return bench.under_way == 1; }));
  suspend(1h);
  CHECK_FALSE(held->valid(BootClock::now()));
  bench.stuck = false;
  CHECK(reached([&] { return bench.under_way == 0; }));
  CHECK(reached([&] { return held->lost().stop_requested(); }));
  CHECK_FALSE(held->valid(BootClock::now()));
  CHECK(held->loss() == dlock::Loss::unconfirmed);
}

TEST_CASE("after a suspend past the lease an extension is refused and a release says that it was lost") {
  const auto table = std::make_shared<FakeLockTable>();
  dlock::Core core(table, {});
  const auto held = core.acquire(dlock::Name("n"), lease_of_an_hour(), {});
  REQUIRE(held);
  suspend(1h);
  try {
    core.extend(held, 1h);
    FAIL("it must throw");
  } catch (const dlock::Error& error) { CHECK(error.fault() == dlock::Fault::lost); }
  CHECK_FALSE(held->valid(BootClock::now()));
  CHECK(core.release(held, 1min) == dlock::Released::was_lost);
  CHECK(table->owner_of("n").empty());
}

TEST_CASE("the deadline of a wait counts a suspend") {
  const auto table = std::make_shared<FakeLockTable>();
  dlock::Core core(table, {});
  dlock::LockOptions forever;
  forever.lease = 24h * 365;
  const auto held = core.acquire(dlock::Name("n"), forever, {});
  REQUIRE(held);
  const auto deadline = later(BootClock::now(), 1h);
  auto waiter = std::async(std::launch::async, [&] {
    return core.acquire(dlock::Name("n"), lease_of_an_hour(), {deadline, {}, true});
  });
  CHECK(waiter.wait_for(50ms) == std::future_status::timeout);
  suspend(1h);
  REQUIRE(waiter.wait_for(far_longer()) == std::future_status::ready);
  CHECK_FALSE(waiter.get());
  CHECK(core.release(held, 1min) == dlock::Released::freed);
}
