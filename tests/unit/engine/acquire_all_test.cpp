// Tests that whoever asks for several names is left with all of them or none, whatever happens in the middle.
#include "engine/core.hpp"
#include "engine/fake_lock_table.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <dlock/error.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using namespace dlock::test;
using dlock::BootClock;
using dlock::Cause;
using dlock::Core;
using dlock::Duration;
using dlock::Failure;
using dlock::Fault;
using dlock::LockOptions;
using dlock::Mode;
using dlock::Name;

namespace {

// Two processes of one table.
struct Bench {
  std::shared_ptr<FakeLockTable> table = std::make_shared<FakeLockTable>();
  std::vector<Name> names{Name("a"), Name("b")};
  Core core;
  Core other{table, {.reentrance = dlock::Reentrance::none}};

  explicit Bench(dlock::EngineOptions options = {.timeouts = {.request = 200ms}}) : core(table, std::move(options)) {}

  auto take(Core& who, const LockOptions& options = {.lease = 1h}, Duration wait = {}) {
    return who.acquire_all(names, options, {later(BootClock::now(), wait), {}, wait > Duration{}}).leases;
  }
  bool all_are_free() {
    const auto all = take(other);
    for (const auto& each : all) other.release(each, 1s);
    return !all.empty();
  }
};

}  // namespace

TEST_CASE("where one of several cannot be closed for its at-least time, those before it are open again") {
  Bench bench;
  int extensions = 0;
  bench.table->before_extending = [&](Duration) {
    if (++extensions == 2) throw Failure(Cause::rejected, "planned");
  };
  CHECK_THROWS_AS(bench.take(bench.core, {.lease = 1h, .at_least = 1h}), dlock::Error);
  CHECK(bench.all_are_free());
}

TEST_CASE("they are open again where the first of them has ended by the time that the last one is closed") {
  Bench bench;
  const Duration lease = 200ms;
  int extensions = 0;
  bench.table->before_extending = [&](Duration) {
    if (++extensions == 2) std::this_thread::sleep_for(2 * lease);
  };
  CHECK(bench.take(bench.core, {.lease = lease, .at_least = 1h, .renew = false}).empty());
  CHECK(eventually([&] { return bench.all_are_free(); }));
}

TEST_CASE("they are open again once the database is back, where it went away meanwhile") {
  Bench bench;
  std::atomic<int> extensions{0};
  bench.table->before_extending = [&](Duration) {
    if (++extensions == 2) bench.table->away = true;
  };
  CHECK_THROWS_AS(bench.take(bench.core, {.lease = 1h, .at_least = 1h}), dlock::Error);
  bench.table->away = false;
  CHECK(eventually([&] { return bench.all_are_free(); }));
}

TEST_CASE("they are open again also for who finds what was left of them before it is looked for") {
  Bench bench;
  std::atomic<int> extensions{0};
  const auto here = std::this_thread::get_id();
  bench.table->before_extending = [&](Duration) {
    // Nor is there an answer for who looks for it later.
    if (std::this_thread::get_id() != here) throw Failure(Cause::disconnected, "planned");
    if (++extensions == 2) bench.table->away = true;
  };
  CHECK_THROWS_AS(bench.take(bench.core, {.lease = 1h, .at_least = 1h}), dlock::Error);
  bench.table->away = false;
  CHECK(eventually([&] { return !bench.take(bench.core, {.lease = 1h}, 1s).empty(); }));
}

TEST_CASE("they are open again also where all that the engine holds is released before they are given back") {
  for (const int moment : {2, 3}) {  // while the second of them is closed, or the first one opened again
    INFO(moment);
    Bench bench;
    std::atomic<int> extensions{0};
    const auto here = std::this_thread::get_id();
    bench.table->before_extending = [&](Duration) {
      if (std::this_thread::get_id() != here) return;
      if (++extensions == moment) CHECK(bench.core.release_all(1s).unconfirmed == 2);
      if (extensions > 1) throw Failure(Cause::rejected, "planned");
    };
    CHECK_THROWS_AS(bench.take(bench.core, {.lease = 1h, .at_least = 1h}), dlock::Error);
    CHECK(extensions >= moment);
    CHECK(eventually([&] { return bench.all_are_free(); }));
  }
}

TEST_CASE("what is thrown of one of several leaves nothing behind that was granted with it") {
  Bench bench;
  bench.table->acquires_together = true;
  std::shared_ptr<dlock::engine::Lease> theirs;
  // Another thread of the job enters while both are asked for, and in another mode.
  bench.table->instead_of_acquiring =
      [&](const dlock::store::AcquireRequest& ask) -> std::optional<dlock::store::Granted> {
    if (ask.name.text() != "a" || theirs) return std::nullopt;
    bench.table->instead_of_acquiring = nullptr;
    const LockOptions shared{.mode = Mode::shared, .lease = 1h, .job = "job"};
    theirs = bench.core.acquire(ask.name, shared, {BootClock::now(), {}, false});
    return dlock::store::Granted{};
  };
  CHECK_THROWS_AS(bench.take(bench.core, {.lease = 1h, .job = "job"}), dlock::Error);
  REQUIRE(theirs);
  bench.core.release(theirs, 1s);
  CHECK(eventually([&] { return bench.all_are_free(); }));
}

TEST_CASE("a try at several of which one has ended meanwhile is granted none") {
  Bench bench;
  std::atomic<int> asked{0};
  const Duration lease = 100ms;
  bench.table->instead_of_acquiring =
      [&](const dlock::store::AcquireRequest& ask) -> std::optional<dlock::store::Granted> {
    if (ask.name.text() == "b" && ++asked == 1) std::this_thread::sleep_for(2 * lease);
    return std::nullopt;
  };
  const auto all = bench.take(bench.core, {.lease = lease, .renew = false});
  CHECK(asked > 0);
  CHECK(all.empty());
}

TEST_CASE("a wait for several that is over while the database is away says that it is away") {
  Bench bench({.timeouts = {.request = 5ms}});
  bench.table->away = true;
  // The first attempt takes a quarter of a second; after that most of the time passes between two of them.
  for (int i = 0; i < 6; ++i) CHECK_THROWS_AS(bench.take(bench.core, {}, 400ms + i * 23ms), dlock::Error);
}
