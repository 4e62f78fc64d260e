// Tests that who is handed a lock by another thread of its engine gets it as it asked for it.
#include "engine/core.hpp"
#include "engine/fake_lock_table.hpp"
#include "engine/lease_renewer_bench.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <vector>

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

namespace {

// How often a lock is handed over before it is free again.
struct HandOversInARow {
  const std::shared_ptr<FakeLockTable> table = std::make_shared<FakeLockTable>();
  std::atomic<int> row = 0, longest = 0;  // written by whoever has the lock, or has just let go of it

  HandOversInARow() {
    table->after_acquiring = [this] {
      if (!handing_) row = 0;
    };
    table->waiting().on_hand_over = [this](const dlock::store::LeaseKey& from, const dlock::store::AcquireRequest& to,
                                           std::int64_t tokens) {
      CHECK(tokens == 1);
      longest = std::max<int>(longest, ++row);
      handing_ = true;
      CHECK(table->release(from, Deadline::max()));
      const bool handed = table->acquire(to, Deadline::max()).token.has_value();
      handing_ = false;
      return handed;
    };
  }

  // Lets the lock go along a line of six, each of whom calls `holding` before it lets go of it.
  template <class Holding>
  void go_along_a_line(Core& core, Holding holding) const {
    const auto acquire = [&] {
      const auto held = core.acquire(Name("n"), {.lease = 1h, .renew = false}, {later(BootClock::now(), 1h), {}, true});
      REQUIRE(held);
      return held;
    };
    const auto held = acquire();
    std::vector<std::future<void>> line;
    for (std::size_t i = 0; i < 6; ++i) {
      line.push_back(std::async(std::launch::async, [&] {
        const auto mine = acquire();
        holding();
        CHECK(core.release(mine, 1min) == Released::freed);
      }));
      CHECK(reached([&] { return core.stats().waiting["n"] == i + 1; }));
    }
    CHECK(core.release(held, 1min) == Released::freed);
    for (auto& each : line) each.get();
  }

 private:
  std::atomic<bool> handing_ = false;
};

// A lock that goes along a line in memory, until something is in the way.
struct InMemory {
  const std::shared_ptr<FakeLockTable> table = std::make_shared<FakeLockTable>();
  std::atomic<int> handed = 0;               // by a statement
  std::atomic<bool> answer_is_lost = false;  // of the next of them
  Core core{table,
            {.reentrance = Reentrance::none,
             .polling = {.first = 1h, .longest = 1h},
             .listen = false,
             .hand_overs = {.in_a_row = 1000, .time = 1h, .local = 1h}}};

  InMemory() {
    table->waiting().on_hand_over = [this](const dlock::store::LeaseKey& from, const dlock::store::AcquireRequest& to,
                                           std::int64_t tokens) {
      if (table->owner_of("n") == to.owner) return true;  // asked again
      table->set_floor(number(from.token) + tokens - 1);
      if (!table->release(from, Deadline::max()) || !table->acquire(to, Deadline::max()).token) return false;
      ++handed;
      if (answer_is_lost.exchange(false))
        throw dlock::Failure(dlock::Cause::disconnected, "the answer is lost", "", true);
      return true;
    };
  }

  Core::LeasePtr acquire() {
    return core.acquire(Name("n"), {.lease = 1h, .renew = false}, {later(BootClock::now(), 1h), {}, true});
  }
  std::future<Core::LeasePtr> wait() {
    const auto before = core.stats().waiting["n"];
    auto waiter = std::async(std::launch::async, [this] { return acquire(); });
    CHECK(reached([&] { return core.stats().waiting["n"] == before + 1; }));
    return waiter;
  }
  void release(const Core::LeasePtr& held) { CHECK(core.release(held, 1min) == Released::freed); }
};

// Whether `next` came in memory: in the row that `held` had.
bool came_in_memory(const Core::LeasePtr& held, const Core::LeasePtr& next) { return next->owner() == held->owner(); }

}  // namespace

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

TEST_CASE("a lock is handed over no more often in a row than is allowed; then it is free for a moment") {
  constexpr int allowed = 2;
  HandOversInARow counted;
  Core core{counted.table,
            {.reentrance = Reentrance::none,
             .polling = {.first = 1h, .longest = 1h},
             .listen = false,
             .hand_overs = {.in_a_row = allowed, .time = 1h, .local = 0s}}};
  // Only to who sleeps is anything handed over: a line that is not asleep yet is short of what it may do.
  REQUIRE(eventually([&] {
    counted.go_along_a_line(core, [] {});
    return counted.longest >= allowed;
  }));
  CHECK(counted.longest == allowed);
}

TEST_CASE("a lock is handed over for no longer than is allowed, however often; then it is free for a moment") {
  constexpr int allowed = 3;  // the third time after 20 s
  HandOversInARow counted;
  Core core{counted.table,
            {.reentrance = Reentrance::none,
             .polling = {.first = 1h, .longest = 1h},
             .listen = false,
             .hand_overs = {.in_a_row = 1000000, .time = 25s, .local = 0s}}};
  REQUIRE(eventually([&] {
    counted.go_along_a_line(core, [] { BootClock::ahead += std::chrono::nanoseconds{10s}.count(); });
    return counted.longest >= allowed;
  }));
  CHECK(counted.longest == allowed);
}

// In the following only to who sleeps is anything handed over: where somebody does not yet, once more.

TEST_CASE("what was handed over by a second attempt goes on by a statement") {
  CHECK(eventually([] {
    InMemory line;
    const auto first = line.acquire();
    auto one = line.wait(), two = line.wait(), three = line.wait();
    line.answer_is_lost = true;
    line.release(first);
    const auto held = one.get();
    const bool doubted = line.handed == 1 && !line.answer_is_lost && held->hand_over_state.reserved > 1;
    line.release(held);
    const auto next = two.get();
    const bool wrong = came_in_memory(held, next);
    const bool handed = line.handed == 2;
    line.release(next);
    const auto last = three.get();
    const bool in_memory = came_in_memory(next, last);  // there is no doubt about that one
    line.release(last);
    CHECK_FALSE(wrong);
    return wrong || (doubted && handed && in_memory);
  }));
}

TEST_CASE("what an attempt without an answer may be granted still goes on by a statement") {
  CHECK(eventually([] {
    InMemory line;
    const auto first = line.acquire();
    auto one = line.wait(), two = line.wait();
    line.release(first);
    const auto held = one.get();
    const bool kept = held->hand_over_state.reserved > 1;
    held->unanswered = true;
    line.release(held);
    const auto next = two.get();
    const bool wrong = came_in_memory(held, next);
    const bool handed = line.handed == 2;
    line.release(next);
    CHECK_FALSE(wrong);
    return wrong || (kept && handed);
  }));
}

TEST_CASE("what a release without an answer may have freed goes on by a statement") {
  CHECK(eventually([] {
    InMemory line;
    const auto first = line.acquire();
    auto one = line.wait(), two = line.wait();
    line.release(first);
    const auto before = one.get();
    line.release(before);
    const auto held = two.get();
    const bool kept = held->hand_over_state.reserved > 1;
    line.table->add_mishap(dlock::Cause::disconnected, true, false);
    dlock::engine::ReleaseRequest request{held};
    REQUIRE_FALSE(line.core.leave(request));
    auto given = line.core.free_together({&request, 1}, 1min);
    REQUIRE_FALSE(given.at(0).end);
    auto three = line.wait();
    CHECK(given.at(0).finish(1min) == Released::freed);
    const auto next = three.get();
    const bool wrong = came_in_memory(held, next);
    const bool handed = line.handed == 2;
    line.release(next);
    CHECK_FALSE(wrong);
    return wrong || (kept && handed);
  }));
}
