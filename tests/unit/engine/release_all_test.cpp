// Tests what becomes of all that an engine holds when it is released at one time, whatever the database does.
#include "engine/core.hpp"
#include "engine/fake_lock_table.hpp"
#include "support/eventually.hpp"

#include <dlock/error.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using namespace dlock::test;
using dlock::BootClock;
using dlock::Cause;
using dlock::Core;
using dlock::Released;
using dlock::engine::Lease;

namespace {

struct Bench {
  std::shared_ptr<FakeLockTable> table = std::make_shared<FakeLockTable>();
  Core core;

  explicit Bench(dlock::EngineOptions options = {}) : core(table, std::move(options)) {}

  std::shared_ptr<Lease> take(const std::string& name, dlock::LockOptions options = {}) {
    auto held = core.acquire(dlock::Name(name), options, {later(BootClock::now(), 1min), {}, false});
    REQUIRE(held);
    return held;
  }
  std::vector<std::shared_ptr<Lease>> take(int count) {
    std::vector<std::shared_ptr<Lease>> all;
    for (int i = 0; i < count; ++i) all.push_back(take("name " + std::to_string(i)));
    return all;
  }
};

}  // namespace

TEST_CASE("many leases are released by few statements, as many in one as may travel together") {
  dlock::EngineOptions options;
  options.combine = 10;
  Bench bench(options);
  const auto all = bench.take(25);
  const auto released = bench.core.release_all(far_longer());
  CHECK(released.freed == 25);
  CHECK(bench.table->releases_together == 3);
  for (const auto& held : all) {
    CHECK_FALSE(held->valid(BootClock::now()));
    CHECK(bench.table->owner_of(held->name()).empty());
    CHECK(bench.core.release(held, 1min) == Released::freed);
  }
}

TEST_CASE("where nothing may travel together each is released alone") {
  dlock::EngineOptions options;
  options.combine = 1;
  Bench bench(options);
  const auto all = bench.take(3);
  CHECK(bench.core.release_all(far_longer()).freed == 3);
  CHECK(bench.table->releases_together == 0);
}

TEST_CASE("a release of all whose answer was lost is asked again, and reported as freed") {
  Bench bench;
  const auto all = bench.take(3);
  bench.table->add_mishap(Cause::disconnected, true, true);
  CHECK(bench.core.release_all(far_longer()).freed == 3);
}

TEST_CASE("where the database is away nothing is confirmed in time, and the engine tries on") {
  Bench bench;
  const auto all = bench.take(5);
  bench.table->away = true;
  const auto released = bench.core.release_all(100ms);
  CHECK(released.unconfirmed == 5);
  CHECK(released.freed == 0);
  for (const auto& held : all) {
    CHECK_FALSE(held->valid(BootClock::now()));
    CHECK_FALSE(held->loss());
    CHECK(bench.core.release(held, 1min) == Released::unconfirmed);
  }
  bench.table->away = false;
  for (const auto& held : all) CHECK(eventually([&] { return bench.table->owner_of(held->name()).empty(); }));
}

TEST_CASE("a lease whose row is locked is released alone") {
  Bench bench;
  const auto all = bench.take(2);
  bench.table->row_locked = true;
  CHECK(bench.core.release_all(far_longer()).freed == 2);  // here alone means that the lock is waited for
  CHECK(bench.table->releases_together == 1);
}

TEST_CASE("what may have been freed with others before somebody else took it is not confirmed, nor lost") {
  Bench bench;
  const auto all = bench.take(2);
  bench.table->taken_at_once = true;
  const auto released = bench.core.release_all(1min);
  CHECK(released.unconfirmed == 2);
  CHECK(bench.core.release(all.front(), 1min) == Released::unconfirmed);
  for (const auto& [loss, times] : bench.core.stats().lost) CHECK(times == 0);
}

TEST_CASE("who leaves while all is released is not counted twice, and nobody enters what was released") {
  Bench bench;
  const auto outer = bench.take("n"), inner = bench.take("n");
  REQUIRE(outer == inner);
  CHECK(bench.core.release(inner, 1min) == Released::still_held);
  CHECK(bench.core.release_all(far_longer()).freed == 1);
  CHECK(bench.core.release_all(far_longer()).freed == 0);
  CHECK(bench.core.hold_count(dlock::Name("n")) == 0);
  const auto next = bench.take("n");
  CHECK(next != outer);
  CHECK(bench.core.release(outer, 1min) == Released::freed);
  CHECK(bench.table->owner_of("n") == next->owner());
  CHECK(bench.core.release(next, 1min) == Released::freed);
}

TEST_CASE("lost() of what was released for all is set, also for who asks for it afterwards") {
  Bench bench;
  const auto asked = bench.take("asked"), unasked = bench.take("unasked");
  const auto lost = asked->lost();
  CHECK(bench.core.release_all(far_longer()).freed == 2);
  CHECK(eventually([&] { return lost.stop_requested(); }));
  CHECK(unasked->lost().stop_requested());
  CHECK_FALSE(asked->loss());
}

TEST_CASE("an extension under way while all is released fails, and brings nothing back") {
  auto table = std::make_shared<FakeLockTable>();
  Core core(table, {});
  const auto held = core.acquire(dlock::Name("n"), {}, {later(BootClock::now(), 1min), {}, false});
  REQUIRE(held);
  table->before_extending = [&](dlock::Duration) { CHECK(core.release_all(far_longer()).freed == 1); };
  try {
    core.extend(held, 1h);
    FAIL("it must throw");
  } catch (const dlock::Error& error) { CHECK(error.fault() == dlock::Fault::lost); }
  CHECK_FALSE(held->valid(BootClock::now()));
  CHECK(table->owner_of("n").empty());
}
