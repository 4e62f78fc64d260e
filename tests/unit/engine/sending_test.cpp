// Tests that trust is counted from when a request was sent, however long its answer takes: the database's count of the
// lease may have begun right then.
#include "engine/core.hpp"
#include "engine/fake_lock_table.hpp"
#include "engine/lease_renewer_bench.hpp"

#include <doctest/doctest.h>

#include <future>

using namespace std::chrono_literals;
using namespace dlock::test;
using dlock::BootClock;
using dlock::Core;
using dlock::Instant;
using dlock::later;
using dlock::Reentrance;
using dlock::Released;
using dlock::engine::Lease;

namespace {

constexpr auto lease = 1h;

// An answer is on its way: nothing runs meanwhile, and the clock stays ahead.
void takes_long() { BootClock::ahead += std::chrono::nanoseconds{10min}.count(); }

struct Bench {
  std::shared_ptr<FakeLockTable> table = std::make_shared<FakeLockTable>();
  Core core;

  explicit Bench(dlock::EngineOptions options = {.reentrance = Reentrance::none}) : core(table, std::move(options)) {}

  std::shared_ptr<Lease> take(bool waits = false) {
    auto held =
        core.acquire(dlock::Name("n"), {.lease = lease, .renew = false}, {later(BootClock::now(), 24h), {}, waits});
    REQUIRE(held);
    return held;
  }
};

// `asked`: before whatever granted or renewed it was sent.
void check_trust(const Lease& held, Instant asked) {
  CHECK(held.trusted_until() < later(asked, lease + 1min));
  CHECK(held.trusted_until() > later(asked, lease - 1min));
}

}  // namespace

TEST_CASE("an acquire that takes long is trusted from its sending") {
  Bench bench;
  bench.table->after_acquiring = takes_long;
  const auto asked = BootClock::now();
  const auto held = bench.take();
  check_trust(*held, asked);
  CHECK(bench.core.release(held, 1min) == Released::freed);
}

TEST_CASE("an entry of a node that takes long is trusted from its sending") {
  Bench bench({.reentrance = Reentrance::node, .node = "replica-0"});
  const auto first = bench.take();
  bench.table->after_acquiring = takes_long;
  const auto asked = BootClock::now();
  const auto second = bench.take();
  REQUIRE(second->token() == first->token());
  check_trust(*second, asked);
  CHECK(bench.core.release(second, 1min) == Released::still_held);
  CHECK(bench.core.release(first, 1min) == Released::freed);
}

TEST_CASE("an extension that takes long is trusted from its sending") {
  Bench bench;
  const auto held = bench.take();
  bench.table->before_extending = [](dlock::Duration) { takes_long(); };
  const auto asked = BootClock::now();
  bench.core.extend(held, lease);
  check_trust(*held, asked);
  CHECK(bench.core.release(held, 1min) == Released::freed);
}

TEST_CASE("a renewal that takes long is trusted from its sending") {
  std::promise<std::shared_ptr<Lease>> taken;
  const auto held = taken.get_future().share();
  std::promise<Instant> confirmed;
  Instant asked{};  // the renewer's
  Bench bench;      // ends before what its renewer uses
  bench.table->on_renew = [&, call = 0](std::span<const dlock::store::LeaseKey>, dlock::Deadline) mutable {
    if (++call == 1) {
      asked = BootClock::now();
      takes_long();
    } else if (call == 2) {  // the first one's answer counts by now, and this one's not yet
      confirmed.set_value(held.get()->trusted_until());
    }
  };
  taken.set_value(bench.core.acquire(dlock::Name("n"), {.lease = lease, .renew_every = 20ms},
                                     {later(BootClock::now(), 24h), {}, false}));
  REQUIRE(held.get());
  auto trusted = confirmed.get_future();
  REQUIRE(trusted.wait_for(far_longer()) == std::future_status::ready);
  const auto until = trusted.get();
  CHECK(until < later(asked, lease));
  CHECK(until > later(asked, lease - 1min));
  CHECK(bench.core.release(held.get(), 1min) == Released::freed);
}

TEST_CASE("a hand-over that takes long is trusted from its sending") {
  Bench bench({.reentrance = Reentrance::none, .polling = {.first = 1h, .longest = 1h}, .listen = false});
  std::optional<Instant> asked;
  bench.table->waiting().on_hand_over = [&](const dlock::store::LeaseKey& from, const dlock::store::AcquireRequest& to,
                                            std::int64_t) {
    asked = BootClock::now();
    REQUIRE(bench.table->release(from, dlock::Deadline::max()));
    const auto granted = bench.table->acquire(to, dlock::Deadline::max());
    takes_long();
    return granted.token.has_value();
  };
  // Only to who sleeps is anything handed over: who does not yet by then takes what is freed.
  REQUIRE(eventually([&] {
    const auto held = bench.take();
    const int looks = bench.table->looks;
    auto waiter = std::async(std::launch::async, [&] { return bench.take(true); });
    CHECK(reached([&] { return bench.table->looks > looks; }));
    CHECK(bench.core.release(held, 1min) == Released::freed);
    const auto heir = waiter.get();
    if (asked) check_trust(*heir, *asked);
    CHECK(bench.core.release(heir, 1min) == Released::freed);
    return asked.has_value();
  }));
}

TEST_CASE("an adoption that takes long is trusted from its sending") {
  Bench bench;
  const auto before = bench.take();
  bench.core.detach(before);
  bench.table->after_adopting = takes_long;
  const auto asked = BootClock::now();
  const auto held =
      bench.core.adopt(dlock::Name("n"), {before->token(), before->owner()}, {.lease = lease, .renew = false});
  REQUIRE(held);
  check_trust(*held, asked);
  CHECK(bench.core.release(held, 1min) == Released::freed);
}
