// What re-entering promises whatever the database does.
#include "engine/core.hpp"
#include "engine/fake_lock_table.hpp"
#include "support/eventually.hpp"

#include <dlock/error.hpp>

#include <doctest/doctest.h>

using namespace std::chrono_literals;
using dlock::Cause;
using dlock::Core;
using dlock::Reentrance;
using dlock::Released;
using dlock::test::eventually;
using dlock::test::FakeLockTable;
using dlock::test::slowness;

namespace {

struct Bench {
  std::shared_ptr<FakeLockTable> table = std::make_shared<FakeLockTable>();
  std::shared_ptr<Core> core;

  explicit Bench(dlock::EngineOptions options = {}) { core = std::make_shared<Core>(table, std::move(options)); }

  std::shared_ptr<dlock::engine::Lease> try_lock(const dlock::LockOptions& options = {},
                                                 dlock::Duration patience = 1min) {
    return core->acquire(dlock::Name("n"), options, {dlock::later(dlock::BootClock::now(), patience), {}, false});
  }
};

// The clock is put ahead, and stays there.
void pass(dlock::Duration length) { dlock::BootClock::ahead += std::chrono::nanoseconds{length}.count(); }

dlock::EngineOptions of_node(bool exclusive = false) {
  dlock::EngineOptions options;
  options.node = "replica-0";
  options.reentrance = Reentrance::node;
  options.node_exclusive = exclusive;
  return options;
}

}  // namespace

TEST_CASE("an entry refreshes a renewed lease only when less than half of its trust is left") {
  Bench bench;
  dlock::LockOptions options;
  options.lease = 1h;
  options.renew_every = 55min;  // so late that the renewer stays out of this
  const auto outer = bench.try_lock(options);
  REQUIRE(outer);
  CHECK(bench.try_lock() == outer);
  CHECK(bench.table->extensions == 0);
  const auto trusted = outer->trusted_until();
  pass(31min);
  CHECK(bench.try_lock() == outer);
  CHECK(bench.table->extensions == 1);
  CHECK(outer->trusted_until() > trusted);
  CHECK(bench.try_lock() == outer);
  CHECK(bench.table->extensions == 1);
  for (int i = 0; i < 3; ++i) CHECK(bench.core->release(outer, 1min) == Released::still_held);
  CHECK(bench.core->release(outer, 1min) == Released::freed);
}

TEST_CASE("an entry into a lease that nobody renews refreshes it always, and says so if it cannot") {
  Bench bench;
  dlock::LockOptions options;
  options.renew = false;
  const auto outer = bench.try_lock(options);
  REQUIRE(outer);
  for (int i = 1; i <= 3; ++i) {
    CHECK(bench.try_lock(options) == outer);
    CHECK(bench.table->extensions == i);
  }
  bench.table->away = true;
  CHECK_THROWS_AS(static_cast<void>(bench.try_lock(options, 10ms)), dlock::Error);
  bench.table->away = false;
  for (int i = 0; i < 3; ++i) CHECK(bench.core->release(outer, 1min) == Released::still_held);
  CHECK(bench.core->release(outer, 1min) == Released::freed);
}

TEST_CASE("an entry never takes a lease beyond the grant's max_hold") {
  Bench bench;
  dlock::LockOptions options;
  options.lease = 10min;
  options.max_hold = 11min;
  options.renew = false;
  const auto outer = bench.try_lock(options);
  REQUIRE(outer);
  options.lease = 1h;
  // What is left of max_hold shrinks on the way to the question: an entry that is held up there goes without an
  // extension.
  int entries = 0;
  CHECK(eventually([&] {
    ++entries;
    CHECK(bench.try_lock(options) == outer);
    return bench.table->extensions == 1;
  }));
  CHECK(outer->remaining(dlock::BootClock::now()) <= 11min);
  CHECK(outer->remaining(dlock::BootClock::now()) > 5min);
  CHECK(bench.try_lock(options) == outer);
  for (int i = 0; i < entries + 1; ++i) CHECK(bench.core->release(outer, 1min) == Released::still_held);
  CHECK(bench.core->release(outer, 1min) == Released::freed);
}

TEST_CASE("while the database is away a renewed lease can be entered as long as it is trusted") {
  Bench bench;
  dlock::LockOptions options;
  options.lease = 1h;
  options.renew_every = 55min;
  const auto outer = bench.try_lock(options);
  REQUIRE(outer);
  bench.table->away = true;
  pass(31min);
  CHECK(bench.try_lock(options, 10ms) == outer);
  bench.table->away = false;
  CHECK(bench.core->release(outer, 1min) == Released::still_held);
  CHECK(bench.core->release(outer, 1min) == Released::freed);
}

TEST_CASE("a lease whose trust has ended is not entered, whoever notices first") {
  Bench bench;
  dlock::LockOptions options;
  options.lease = 20ms;
  const auto outer = bench.try_lock(options);
  REQUIRE(outer);
  CHECK(eventually([&] { return dlock::BootClock::now() >= outer->trusted_until(); }));  // each entry would extend it
  std::shared_ptr<dlock::engine::Lease> next;
  REQUIRE(eventually([&] { return (next = bench.try_lock()) != nullptr; }));  // the lease itself lasts a little longer
  CHECK(next != outer);
  CHECK(number(next->token()) == number(outer->token()) + 1);
  CHECK(outer->loss() == dlock::Loss::unconfirmed);
  CHECK(bench.core->release(outer, 1min) == Released::was_lost);
  CHECK(bench.core->release(next, 1min) == Released::freed);
}

TEST_CASE("a node's entry whose answers are lost enters once and leaves once") {
  Bench bench(of_node());
  bench.table->add_mishap(Cause::disconnected, true, true);  // of the first grant
  const auto first = bench.try_lock();
  REQUIRE(first);
  bench.table->add_mishap(Cause::deadlock, false, false);
  bench.table->add_mishap(Cause::disconnected, true, true);
  const auto second = bench.try_lock();
  REQUIRE(second);
  CHECK(second->token() == first->token());
  CHECK(second->owner() != first->owner());
  bench.table->add_mishap(Cause::disconnected, true, true);
  CHECK(bench.core->release(first, 1min) == Released::still_held);
  bench.table->add_mishap(Cause::disconnected, true, true);
  CHECK(bench.core->release(second, 1min) == Released::freed);
  CHECK(bench.table->owner_of("n").empty());
}

TEST_CASE("a node's entry that stays in doubt is left later, and the others' stay") {
  Bench bench(of_node());
  const auto first = bench.try_lock();
  REQUIRE(first);
  bench.table->add_mishap(Cause::deadlock, false, false);
  bench.table->add_mishap(Cause::disconnected, true, true);
  bench.table->away_after_mishaps = true;
  CHECK_THROWS_AS(static_cast<void>(bench.try_lock({}, 200ms * slowness())), dlock::Error);
  bench.table->away = false;
  CHECK(bench.table->owner_of("n") == first->owner());
  CHECK(bench.core->release(first, 1min) != Released::was_lost);
  CHECK(eventually([&] { return bench.table->owner_of("n").empty(); }));
}

TEST_CASE("an exclusive engine replaces another's grant, and joins its own") {
  Bench bench(of_node());
  const auto old = bench.try_lock();
  REQUIRE(old);
  const auto exclusive = std::make_shared<Core>(bench.table, of_node(true));
  const auto ask = [&] { return exclusive->acquire(dlock::Name("n"), {}, {dlock::Deadline::max(), {}, false}); };
  const auto first = ask(), second = ask();
  REQUIRE(first);
  REQUIRE(second);
  CHECK(number(first->token()) == number(old->token()) + 1);
  CHECK(second->token() == first->token());
  CHECK(bench.core->release(old, 1min) == Released::was_lost);
  CHECK(exclusive->release(first, 1min) == Released::still_held);
  CHECK(exclusive->release(second, 1min) == Released::freed);
}
