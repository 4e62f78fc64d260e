// Tests that who is handed a lock by another thread of its engine gets it as it asked for it.
#include "engine/core.hpp"
#include "engine/fake_lock_table.hpp"
#include "engine/lease_renewer_bench.hpp"

#include <doctest/doctest.h>

#include <future>
#include <optional>

using namespace std::chrono_literals;
using namespace dlock::test;
using dlock::BootClock;
using dlock::Core;
using dlock::Deadline;
using dlock::Duration;
using dlock::later;
using dlock::Name;
using dlock::Reentrance;
using dlock::Released;

TEST_CASE("who is handed the lock has what it asked for: its at-least time, metadata, label and lease") {
  const auto table = std::make_shared<FakeLockTable>();
  Core core{table,
            {.reentrance = Reentrance::none,
             .node = "replica-0",
             .label = "of the engine",
             .polling = {.first = 1h, .longest = 1h},
             .listen = false}};
  struct Asked {
    std::string node, label, metadata;
    Duration lease, at_least;
  };
  std::optional<Asked> asked;
  table->waiting().on_hand_over = [&](const dlock::store::LeaseKey& from, const dlock::store::AcquireRequest& to,
                                      std::int64_t) {
    asked = {std::string(to.node), std::string(to.label), std::string(to.metadata), to.lease, to.at_least};
    CHECK(table->release(from, Deadline::max()));
    return table->acquire(to, Deadline::max()).token.has_value();
  };
  const dlock::LockOptions wanted{
      .lease = 7min, .at_least = 1us, .renew = false, .label = "heir", .metadata = "the heir's"};
  // Only to who sleeps is anything handed over: who does not yet by then takes what is freed.
  REQUIRE(eventually([&] {
    const auto held = core.acquire(Name("n"), {.renew = false}, {later(BootClock::now(), 1h), {}, true});
    REQUIRE(held);
    const int looks = table->looks;
    auto waiter = std::async(std::launch::async, [&] {
      return core.acquire(Name("n"), wanted, {later(BootClock::now(), 1h), {}, true});
    });
    CHECK(reached([&] { return table->looks > looks; }));
    CHECK(core.release(held, 1min) == Released::freed);
    const auto heir = waiter.get();
    REQUIRE(heir);
    CHECK(core.release(heir, 1min) == Released::freed);
    return asked.has_value();
  }));
  CHECK(asked->node == "replica-0");
  CHECK(asked->label == "heir");
  CHECK(asked->metadata == "the heir's");
  CHECK(asked->lease == 7min);
  CHECK(asked->at_least == 1us);
}
