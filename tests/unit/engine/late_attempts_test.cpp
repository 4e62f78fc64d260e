// Tests that an acquire which got no answer, and takes effect when nobody reckons with it any more, holds a name up for
// a moment at most.
#include "engine/core.hpp"
#include "engine/fake_lock_table.hpp"
#include "engine/lease/leftovers.hpp"
#include "engine/lease_renewer_bench.hpp"

#include <dlock/error.hpp>

#include <doctest/doctest.h>

#include <future>
#include <string>

using namespace std::chrono_literals;
using namespace dlock::test;
using dlock::BootClock;
using dlock::Core;
using dlock::Duration;
using dlock::later;
using dlock::Released;
using dlock::engine::Lease;
using dlock::engine::withdraw_at_last;

namespace {

constexpr Duration lease = 1h;

// Two processes of one table; the first's acquires hang.
struct Bench {
  std::shared_ptr<FakeLockTable> table = std::make_shared<FakeLockTable>();
  Core core{table, {.reentrance = dlock::Reentrance::none, .timeouts = {.request = 1s}}};
  Core other{table, {.reentrance = dlock::Reentrance::none}};

  static std::shared_ptr<Lease> take(Core& core, Duration wait = {}) {
    return core.acquire(dlock::Name("n"), {.lease = lease}, {later(BootClock::now(), wait), {}, wait > Duration{}});
  }
  // Granted, with an attempt of the same owner under way still.
  std::shared_ptr<Lease> take_at_the_second_attempt() {
    table->hang_acquires(1);
    return take(core, 10s);
  }
  bool is_free() { return table->owner_of("n").empty(); }
};

}  // namespace

TEST_CASE("an attempt that takes effect after the release of its own grant is refused") {
  Bench bench;
  const auto held = bench.take_at_the_second_attempt();
  REQUIRE(held);
  CHECK(bench.core.release(held, 1s) == Released::freed);
  bench.table->arrive();
  CHECK(bench.is_free());
  CHECK(bench.take(bench.other));
}

TEST_CASE("an attempt that takes effect after somebody else has had the name holds it for a moment only") {
  Bench bench;
  const auto held = bench.take_at_the_second_attempt();
  REQUIRE(held);
  CHECK(bench.core.release(held, 1s) == Released::freed);
  const auto next = bench.take(bench.other);
  REQUIRE(next);
  CHECK(bench.other.release(next, 1s) == Released::freed);
  CHECK(bench.table->arrive() == held->owner());
  CHECK(reached([&] { return bench.is_free(); }));
}

TEST_CASE("who has shared a name bars its own late attempts before it says that it has left") {
  Bench bench;
  const auto held = bench.take(bench.core);
  REQUIRE(held);
  held->in_mode(dlock::Mode::shared);
  held->unanswered = true;
  const int before = bench.table->withdrawals;
  CHECK(bench.core.release(held, 1s) == Released::freed);
  CHECK(bench.table->withdrawals > before);
}

TEST_CASE(
    "at its end an engine withdraws all that was given up, but a grant that is meant, and tries again where that "
    "fails") {
  FakeLockTable table;
  const std::string owner(32, 'a');
  const auto granted = [&](const char* text) {
    const dlock::Name name(text);
    return *table.acquire({name, owner, "node", "label", owner, lease, {}, {}}, later(BootClock::now(), 1s)).token;
  };
  granted("freed before");
  granted("new");
  const auto kept = granted("kept");
  table.withdrawals_to_fail = 3;
  withdraw_at_last(table, {{"freed before", owner}, {"new", owner, {}, false}, {"kept", owner, kept}}, 10s,
                   [](Duration longest) { return later(BootClock::now(), longest); });
  CHECK(table.owner_of("freed before").empty());
  CHECK(table.owner_of("new").empty());
  CHECK(table.owner_of("kept") == owner);
  table.withdrawals_to_fail = 1'000'000;
  const auto begun = BootClock::now();
  withdraw_at_last(table, {{"new", owner, {}, false}}, 50ms,
                   [](Duration longest) { return later(BootClock::now(), longest); });
  CHECK(BootClock::now() - begun >= 50ms);
}

TEST_CASE("a process asks for what its own late attempt holds, and has it at once") {
  Bench bench;
  const auto held = bench.take_at_the_second_attempt();
  REQUIRE(held);
  CHECK(bench.core.release(held, 1s) == Released::freed);
  const auto next = bench.take(bench.other);
  REQUIRE(next);
  CHECK(bench.other.release(next, 1s) == Released::freed);
  bench.table->arrive();
  // The renewer may free it while the first of these looks who has it.
  CHECK((bench.take(bench.core) || bench.take(bench.core)));
}

TEST_CASE("a waiter does not wait for itself: what its own late attempt was granted is its own") {
  Bench bench;
  const auto first = bench.take(bench.other);
  REQUIRE(first);
  bench.table->hang_acquires(1);
  auto waiter = std::async(std::launch::async, [&] { return bench.take(bench.core, 30s); });
  CHECK(reached([&] { return bench.table->hanging() == 1; }));
  CHECK_FALSE(bench.table->free_and_arrive("n").empty());  // between two looks of the waiter
  const auto held = waiter.get();
  REQUIRE(held);
  CHECK(held->valid(BootClock::now()));
  CHECK(bench.table->owner_of("n") == held->owner());
  CHECK(bench.core.release(held, 1s) == Released::freed);
  CHECK(bench.other.release(first, 1s) == Released::was_lost);
}

TEST_CASE("what is granted to a waiter that has given up is freed, though somebody else had the name when it gave up") {
  Bench bench;
  const auto first = bench.take(bench.other);
  REQUIRE(first);
  bench.table->hang_acquires(1);
  CHECK_FALSE(bench.take(bench.core, 300ms * slowness()));
  CHECK_FALSE(bench.table->free_and_arrive("n").empty());  // before the renewer could withdraw it
  CHECK(reached([&] { return bench.is_free(); }));
  CHECK(bench.other.release(first, 1s) == Released::was_lost);
}

TEST_CASE("after an acquire in doubt its attempt is not granted any more, whether there was a row or not") {
  for (const bool row : {false, true}) {
    Bench bench;
    if (row) bench.other.release(bench.take(bench.other), 1s);
    bench.table->hang_acquires(1000);
    CHECK_THROWS_AS(static_cast<void>(bench.take(bench.core)), dlock::Error);
    bench.table->hang_acquires(0);
    CHECK(reached([&] { return bench.table->withdrawals > 0; }));
    bench.table->arrive();
    CHECK(bench.is_free());
  }
}

TEST_CASE("a detached grant is left alone by who looks for its late attempts, and what they take later is freed") {
  Bench bench;
  const auto held = bench.take_at_the_second_attempt();
  REQUIRE(held);
  bench.core.detach(held);
  const auto before = bench.table->looks.load();
  CHECK(reached([&] { return bench.table->looks > before + 5; }));
  CHECK(bench.table->owner_of("n") == held->owner());
  REQUIRE(bench.other.force_release(dlock::Name("n"), held->token()));
  const auto next = bench.take(bench.other);
  REQUIRE(next);
  CHECK(bench.other.release(next, 1s) == Released::freed);
  CHECK(bench.table->arrive() == held->owner());
  CHECK(reached([&] { return bench.is_free(); }));
}

TEST_CASE("a grant that was asked for once is not looked for after its release") {
  Bench bench;
  const auto held = bench.take(bench.core);
  REQUIRE(held);
  CHECK(bench.core.release(held, 1s) == Released::freed);
  const auto late = bench.take_at_the_second_attempt();  // of this one something may come
  REQUIRE(late);
  CHECK(bench.core.release(late, 1s) == Released::freed);
  CHECK(reached([&] { return bench.table->looks > 2; }));
  CHECK(bench.table->withdrawals == 0);
}

TEST_CASE("what was given up is withdrawn before its engine ends, though that has failed before") {
  const auto table = std::make_shared<FakeLockTable>();
  {
    Core core{table, {.reentrance = dlock::Reentrance::none, .timeouts = {.request = 1s}}};
    table->hang_acquires(1000);
    table->withdrawals_to_fail = 1;
    CHECK_THROWS_AS(static_cast<void>(Bench::take(core)), dlock::Error);
    table->hang_acquires(0);
    REQUIRE(reached([&] { return table->withdrawals_to_fail == 0; }));
  }  // sooner than the renewer would try again
  CHECK(table->arrive().empty());
}

TEST_CASE("who waits in its process hears when an attempt that came late is freed, however rarely it looks") {
  const auto table = std::make_shared<FakeLockTable>();
  dlock::EngineOptions rarely{.reentrance = dlock::Reentrance::none, .timeouts = {.request = 200ms}};
  rarely.polling.first = rarely.polling.longest = 1h;
  rarely.listen = false;
  Core core{table, rarely};
  Core other{table, {.reentrance = dlock::Reentrance::none}};
  table->hang_acquires(1000);
  CHECK_THROWS_AS(Bench::take(core), dlock::Error);
  table->hang_acquires(0);
  const auto theirs = Bench::take(other);
  REQUIRE(theirs);
  const auto looks = table->looks.load();
  auto waiting = std::async(std::launch::async, [&] { return Bench::take(core, far_longer()); });
  REQUIRE(eventually([&] { return table->looks > looks + 1; }));
  CHECK_FALSE(table->free_and_arrive("n").empty());
  CHECK(waiting.get());
}
