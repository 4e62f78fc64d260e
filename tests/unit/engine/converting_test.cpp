// Tests what becomes of a lease that is made shared, or exclusive again, when nobody answers.
#include "engine/core.hpp"
#include "engine/fake_lock_table.hpp"
#include "engine/lease_renewer_bench.hpp"

#include <dlock/error.hpp>

#include <doctest/doctest.h>

using namespace std::chrono_literals;
using namespace dlock::test;
using dlock::BootClock;
using dlock::Cause;
using dlock::Error;
using dlock::Fault;
using dlock::later;

TEST_CASE("a lock that nobody answers for while it is converted is lost") {
  for (const bool carried_out : {true, false}) {
    INFO("carried out: " << carried_out);
    const auto table = std::make_shared<FakeLockTable>();
    dlock::Core core(table, {.reentrance = dlock::Reentrance::none, .timeouts = {.request = 100ms}});
    const auto held = core.acquire(dlock::Name("n"), {.lease = 1h}, {later(BootClock::now(), 10s), {}, false});
    REQUIRE(held);
    table->add_mishap(Cause::disconnected, true, carried_out);
    table->away_after_mishaps = true;
    CHECK_THROWS_AS(core.downgrade(held), Error);
    CHECK_FALSE(held->valid(BootClock::now()));
    CHECK(held->loss() == dlock::Loss::unconfirmed);
    table->away = false;
    // Neither the one before nor the one that it may have become holds the name for long.
    CHECK(reached([&] { return table->look("n", 0, {later(BootClock::now(), 1s)}).owner.empty(); }));
  }
}

TEST_CASE("a writer that is to become a reader is trusted no more from the sending on, nor if nothing was sent") {
  const auto table = std::make_shared<FakeLockTable>();
  dlock::Core core(table, {.reentrance = dlock::Reentrance::none, .timeouts = {.request = 50ms}});
  const auto held = core.acquire(dlock::Name("n"), {.lease = 1h}, {later(BootClock::now(), 10s), {}, false});
  REQUIRE(held);
  table->before_downgrading = [&] { CHECK_FALSE(held->valid(BootClock::now())); };
  table->away = true;
  CHECK_THROWS_AS(core.downgrade(held), Error);
  CHECK_FALSE(held->valid(BootClock::now()));
  table->away = false;
  CHECK(reached([&] { return table->look("n", 0, {later(BootClock::now(), 1s)}).owner.empty(); }));
}
