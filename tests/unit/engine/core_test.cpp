// What the engine promises whatever the database does: doubt, loss, patience.
#include "engine/core.hpp"
#include "engine/fake_lock_table.hpp"
#include "engine/lease/trust.hpp"
#include "support/eventually.hpp"

#include <dlock/error.hpp>

#include <doctest/doctest.h>

#include <condition_variable>

using namespace std::chrono_literals;
using dlock::Cause;
using dlock::Core;
using dlock::test::eventually;
using dlock::test::FakeLockTable;
using dlock::test::far_longer;
using dlock::test::slowness;

namespace {

// An engine on a table in memory, and what it told its observer.
struct Bench {
  std::shared_ptr<FakeLockTable> table = std::make_shared<FakeLockTable>();
  std::mutex mutex;
  std::condition_variable told;
  std::vector<std::pair<dlock::Event::Kind, std::string>> events;
  std::shared_ptr<Core> core;

  explicit Bench(dlock::EngineOptions options = {}) {
    options.observer = [this](const dlock::Event& event) {
      const std::lock_guard guard(mutex);
      events.emplace_back(event.kind, event.text);
      told.notify_all();
    };
    core = std::make_shared<Core>(table, std::move(options));
  }
  ~Bench() { core.reset(); }

  // Waits for an event of that kind, and answers its text.
  std::string text_of(dlock::Event::Kind kind) {
    std::unique_lock guard(mutex);
    std::string text;
    const bool seen = told.wait_for(guard, far_longer(), [&] {
      for (const auto& [what, words] : events)
        if (what == kind) {
          text = words;
          return true;
        }
      return false;
    });
    REQUIRE(seen);
    return text;
  }

  std::shared_ptr<dlock::engine::Lease> try_lock(const dlock::LockOptions& options = {},
                                                 dlock::Duration patience = 1min) {
    return core->acquire(dlock::Name("n"), options, {dlock::later(dlock::BootClock::now(), patience), {}, false});
  }
};

dlock::LockOptions lease_of(dlock::Duration lease) {
  dlock::LockOptions options;
  options.lease = lease;
  return options;
}

dlock::LockOptions renewed_often() {
  auto options = lease_of(1h);
  options.renew_every = 50ms;
  return options;
}

}  // namespace

TEST_CASE("trust ends before the lease, counted from the sending") {
  using dlock::engine::margin_of;
  using dlock::engine::trust_end;
  CHECK(margin_of(30s, 1ms, {}) == 500ms);
  CHECK(margin_of(2s, 1ms, {}) == 100ms);
  CHECK(margin_of(10ms, 1ms, {}) == 1ms);
  CHECK(margin_of(10ms, 3ms, {}) == 3ms);
  CHECK(margin_of(30s, 1ms, 2s) == 2s);
  const dlock::Instant sent{100s};
  CHECK(trust_end(sent, 30s, 500ms) == sent + 29500ms);
  CHECK(trust_end(sent, 1ms, 1ms) == sent);
  CHECK(trust_end(sent, dlock::Duration::max(), 1ms) == dlock::Instant::max());
}

TEST_CASE("an acquire whose answer was lost is asked again and granted once") {
  Bench bench;
  bench.table->add_mishap(Cause::disconnected, true, true);
  const auto held = bench.try_lock();
  REQUIRE(held);
  CHECK(number(held->token()) == 1);
  CHECK(bench.table->owner_of("n") == held->owner());
  CHECK(bench.core->release(held, 1min) == dlock::Released::freed);
}

TEST_CASE("an acquire that stays in doubt says so, and what it took is given back") {
  Bench bench;
  bench.table->add_mishap(Cause::disconnected, true, true);
  bench.table->away_after_mishaps = true;
  try {
    static_cast<void>(bench.try_lock({}, 200ms * slowness()));
    FAIL("it must throw");
  } catch (const dlock::Error& error) { CHECK(error.fault() == dlock::Fault::in_doubt); }
  CHECK_FALSE(bench.table->owner_of("n").empty());
  bench.table->away = false;
  CHECK(eventually([&] { return bench.table->owner_of("n").empty(); }));
}

TEST_CASE("a release whose answer was lost is asked again and reported as freed") {
  Bench bench;
  const auto held = bench.try_lock();
  REQUIRE(held);
  bench.table->add_mishap(Cause::disconnected, true, true);
  CHECK(bench.core->release(held, 1min) == dlock::Released::freed);
}

TEST_CASE("a deadlock or a serialization failure of the engine's own statement never reaches the caller") {
  Bench bench;
  bench.table->add_mishap(Cause::deadlock, false, false);
  bench.table->add_mishap(Cause::serialization, false, false);
  const auto held = bench.try_lock();
  REQUIRE(held);
  bench.table->add_mishap(Cause::deadlock, false, false);
  CHECK(bench.core->release(held, 1min) == dlock::Released::freed);
}

TEST_CASE("the cause is told though the last attempts were not even sent, and together with what they failed with") {
  const auto thrown = [](Bench& bench) -> std::optional<dlock::Error> {
    try {
      static_cast<void>(bench.try_lock({}, 200ms * slowness()));
    } catch (const dlock::Error& error) { return error; }
    return std::nullopt;
  };
  Bench bench;
  bench.table->add_mishap(Cause::read_only, false, false);
  for (int i = 0; i < 1000; ++i) bench.table->add_mishap(Cause::timed_out, false, false);
  const auto told = thrown(bench);
  REQUIRE(told);
  CHECK(told->fault() == dlock::Fault::unavailable);
  CHECK(std::string(told->what()) == "a mishap; when asked again: a mishap");

  // Where there is no connection any more, that is told, too; and nothing but the last where nothing was told before.
  Bench away;
  away.table->add_mishap(Cause::read_only, false, false);
  away.table->away_after_mishaps = true;
  CHECK(std::string(thrown(away).value().what()) == "a mishap; when asked again: nobody listens");
  Bench scarce;
  for (int i = 0; i < 1000; ++i) scarce.table->add_mishap(Cause::timed_out, false, false);
  CHECK(thrown(scarce).value().fault() == dlock::Fault::timeout);
}

TEST_CASE("a missing right or table is told at once") {
  Bench bench;
  bench.table->add_mishap(Cause::permission, false, false);
  try {
    static_cast<void>(bench.try_lock());
    FAIL("it must throw");
  } catch (const dlock::Error& error) { CHECK(error.fault() == dlock::Fault::permission); }
}

TEST_CASE("a renewal that fails in passing is no loss") {
  Bench bench;
  const auto held = bench.try_lock(renewed_often());
  REQUIRE(held);
  bench.table->add_mishap(Cause::disconnected, true, false);
  bench.table->add_mishap(Cause::deadlock, false, false);
  const auto end_of_first_lease = held->trusted_until();
  CHECK(eventually([&] { return held->trusted_until() > end_of_first_lease; }));
  CHECK_FALSE(held->loss());
  CHECK(bench.core->release(held, 1min) == dlock::Released::freed);
}

TEST_CASE("a database that stays away warns first, and then the lease is lost, unconfirmed") {
  Bench bench;
  const auto held = bench.try_lock(lease_of(600ms * slowness()));
  REQUIRE(held);
  const auto trusted = held->trusted_until();
  bench.table->away = true;
  CHECK(bench.text_of(dlock::Event::Kind::trust_low) == "nobody listens");
  CHECK(bench.text_of(dlock::Event::Kind::lost) == "trust ran out before a renewal was confirmed");
  CHECK(dlock::BootClock::now() >= trusted);
  CHECK(held->loss() == dlock::Loss::unconfirmed);
  CHECK(held->lost().stop_requested());
  CHECK_FALSE(held->valid(dlock::BootClock::now()));
}

TEST_CASE("a row that is locked elsewhere is not known yet, not lost") {
  Bench bench;
  const auto held = bench.try_lock(renewed_often());
  REQUIRE(held);
  bench.table->row_locked = true;
  CHECK(eventually([&] { return bench.table->renewals >= 2; }));
  CHECK_FALSE(held->loss());
  bench.table->row_locked = false;
  const auto before = held->trusted_until();
  CHECK(eventually([&] { return held->trusted_until() > before; }));
  CHECK_FALSE(held->loss());
  CHECK(bench.core->release(held, 1min) == dlock::Released::freed);
}

TEST_CASE(
    "one of several who hold a name, whose row is always locked when leases are renewed, has its turn by itself") {
  Bench bench;
  dlock::LockOptions options;
  options.lease = 4s * slowness();
  options.mode = dlock::Mode::shared;
  options.reentrance = dlock::Reentrance::none;
  const auto held = bench.try_lock(options);
  REQUIRE(held);
  bench.table->row_locked = true;
  const auto before = held->trusted_until();
  CHECK(eventually([&] { return held->trusted_until() > before; }));
  CHECK(bench.table->extensions >= 1);
  CHECK_FALSE(held->loss());
  CHECK(bench.core->release(held, 1min) == dlock::Released::freed);
}

TEST_CASE("a lease taken away by force is lost, and the reason is told") {
  Bench bench;
  const auto held = bench.try_lock(renewed_often());
  REQUIRE(held);
  REQUIRE(bench.core->force_release(dlock::Name("n"), held->token()));
  CHECK(bench.text_of(dlock::Event::Kind::lost) == "it was released by force");
  CHECK(held->loss() == dlock::Loss::forced);
  CHECK(bench.core->release(held, 1min) == dlock::Released::was_lost);
}

TEST_CASE("a loss that whoever lets go is the first to see is told and counted, once, and is no release") {
  for (const bool away : {false, true})
    for (const bool detaches : {false, true}) {
      CAPTURE(away);
      CAPTURE(detaches);
      Bench bench;
      auto options = lease_of(1h);
      options.renew = false;  // so that no thread wakes up in time
      const auto held = bench.try_lock(options);
      REQUIRE(held);
      dlock::BootClock::ahead += std::chrono::nanoseconds{2h}.count();
      bench.table->away = away;
      if (detaches) bench.core->detach(held);
      else CHECK(bench.core->release(held, 20ms) == dlock::Released::was_lost);
      CHECK(bench.text_of(dlock::Event::Kind::lost).find("trust ran out") != std::string::npos);
      const auto stats = bench.core->stats();
      CHECK(stats.lost.at(dlock::Loss::unconfirmed) == 1);
      CHECK(stats.released == 0);
      CHECK(stats.leases == 0);
      bench.table->away = false;
    }
}

TEST_CASE("an answer later than half the grace period looks at the floor again") {
  dlock::EngineOptions options;
  options.reaper.grace = 1us;  // every answer is late
  Bench bench(options);
  bench.table->set_floor(100);
  const auto held = bench.try_lock();  // begins above the floor: kept
  REQUIRE(held);
  CHECK(number(held->token()) == 101);
  CHECK(bench.core->release(held, 1min) == dlock::Released::freed);
}

TEST_CASE("leases that are due together are renewed by one statement") {
  Bench bench;
  const std::chrono::milliseconds lease = 3s * slowness();
  std::vector<std::shared_ptr<dlock::engine::Lease>> all;
  for (int i = 0; i < 200; ++i)
    all.push_back(bench.core->acquire(dlock::Name("many/" + std::to_string(i)), lease_of(lease),
                                      {dlock::Deadline::max(), {}, false}));
  const auto first = all.front()->trusted_until();
  CHECK(eventually([&] { return all.back()->trusted_until() > first + lease / 4; }));
  CHECK(bench.table->renewals < 10);
  for (const auto& held : all) CHECK(bench.core->release(held, 1min) == dlock::Released::freed);
}
