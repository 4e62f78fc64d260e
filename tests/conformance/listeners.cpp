// The promise that a release which somebody waits for is heard by whoever listens, in any process.
#include "support/listeners.hpp"
#include "store/reaper_table.hpp"
#include "support/process.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <thread>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;
using dialects::AwaitedLock;

TEST_CASE("a release that somebody waits for is heard by every listener") {
  Database database;
  make_wanted(database, "job");
  NotifyingHolder holder(database);
  const AwaitedLock awaited[] = {{"job", holder.actor()}};
  const auto first = listener_of(database), second = listener_of(database);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(holder.take_and_free_until("job", [&] { return heard(first->wait(awaited, soon(100ms)), "job"); }));
  CHECK(holder.take_and_free_until("job", [&] { return heard(second->wait(awaited, soon(100ms)), "job"); }));
}

TEST_CASE("whatever frees a name notifies, not only its release") {
  Database database;
  struct Way {
    const char* name;
    Mode mode;
    std::function<void(store::LockTable& table, const store::LeaseKey& claim)> free;
    std::int64_t permits = 1;  // but for one, somebody has them all the time
  };
  const auto freed = [](store::LockTable& table, const store::LeaseKey& claim) {
    CHECK(patiently([&] { return table.release(claim, soon()); }));
  };
  const Way ways[] = {
      {"force", Mode::exclusive,
       [](auto& table, auto& claim) {
         CHECK(patiently([&] { return table.force_release(claim.name, claim.token, {}, soon()); }));
       }},
      {"withdrawal", Mode::exclusive,
       [](auto& table, auto& claim) { patiently([&] { table.withdraw(claim.name, claim.owner, soon()); }); }},
      {"settling", Mode::exclusive,
       [&](auto& table, auto& claim) {
         database.admin().expire(claim.name);
         CHECK(patiently([&] { return table.reaping().settle(claim.name, claim.token, "a reaper", soon()); }));
       }},
      {"last entry of a node", Mode::node, freed},
      {"last reader", Mode::shared, freed},
      {"last permit", Mode::permits, freed},
      {"one of two permits", Mode::permits, freed, 2},
  };
  for (const auto& way : ways) {
    INFO(way.name);
    make_wanted(database, way.name);
    // One for each way, and a name for each: nobody hears what was sent before.
    NotifyingHolder holder(database);
    const auto actor = holder.actor();
    const AwaitedLock awaited[] = {{way.name, actor}};
    const auto listener = listener_of(database);
    REQUIRE(listener);
    const Name name(way.name);
    const auto granted_to = [&](const std::string& owner) {
      store::AcquireRequest ask{name, owner, "node", "label", actor, 1h, {}, ""};
      ask.mode = way.mode;
      ask.limit = way.permits;
      return patiently([&] { return holder.table().acquire(ask, soon()); });
    };
    const auto resident = random_identity();
    std::optional<Token> its;
    if (way.permits > 1) REQUIRE((its = granted_to(resident).token));
    CHECK(eventually(
        [&] {
          const auto owner = random_identity();
          const auto granted = granted_to(owner);
          REQUIRE(granted.token);
          way.free(holder.table(), {name.text(), owner, *granted.token, 1h, way.mode});
          return heard(listener->wait(awaited, soon(100ms)), way.name);
        },
        10s * std::min(slowness(), 3)));
    if (its) freed(holder.table(), store::LeaseKey{way.name, resident, *its, 1h, way.mode});
  }
}

TEST_CASE("a notification while nobody is in wait() is heard by the next one") {
  Database database;
  make_wanted(database, "job");
  NotifyingHolder holder(database);
  const AwaitedLock awaited[] = {{"job", holder.actor()}};
  const auto listener = listener_of(database);
  REQUIRE(listener);
  REQUIRE(holder.take_and_free_until("job", [&] { return heard(listener->wait(awaited, soon(100ms)), "job"); }));
  for (int i = 0; i < 20; ++i) {
    holder.take_and_free("job");
    CHECK(heard(listener->wait(awaited, soon()), "job"));
  }
}

TEST_CASE("a release is heard of a name whose holder was not known when it came") {
  Database database;
  make_wanted(database, "job");
  NotifyingHolder holder(database);
  const AwaitedLock awaited[] = {{"job", holder.actor()}}, seen_before[] = {{"job", ""}};
  const auto listener = listener_of(database);
  REQUIRE(listener);
  const auto heard_as = [&](std::span<const AwaitedLock> locks, Deadline until) {
    return heard(listener->wait(locks, until), "job");
  };
  REQUIRE(holder.take_and_free_until("job", [&] { return heard_as(awaited, soon(100ms)); }));
  for (int i = 0; i < 5; ++i) {
    // Where a question to a server goes with its time, it may be over before anything is heard: then once more.
    CHECK(eventually([&] {
      while (heard_as(awaited, soon(100ms))) {}  // listens to it now
      holder.take_and_free("job");
      return heard_as(seen_before, soon(5s));
    }));
  }
}

TEST_CASE("a wait ends at its deadline, and at once when it is interrupted, then or before") {
  Database database;
  make_wanted(database, "job");
  NotifyingHolder holder(database);
  const AwaitedLock awaited[] = {{"job", holder.actor()}, {"other", ""}};
  const auto listener = listener_of(database);
  REQUIRE(listener);
  const auto end = soon(50ms);
  while (!listener->wait(awaited, end).empty()) {}
  CHECK(end.passed());
  // What is heard late is told first.
  const auto until_interrupted = [&] {
    while (!listener->wait(awaited, Deadline::max()).empty()) {}
  };
  listener->interrupt();
  until_interrupted();
  CHECK(eventually([&] { return listener->wait({}, soon(1ms)).empty(); }));
  for (int i = 0; i < 20; ++i) {
    const std::jthread other([&] { listener->interrupt(); });
    until_interrupted();
  }
}

TEST_CASE("releases that nobody waits for start nothing") {
  Database database;
  NotifyingHolder holder(database);
  holder.take_and_free("job");
  const auto threads = count_threads();
  const auto open = count_descriptors();
  for (int i = 0; i < 10; ++i) holder.take_and_free("job");
  CHECK(count_threads() == threads);
  CHECK(count_descriptors() == open);
}

TEST_CASE("listeners that come and go leave nothing open, and no other program inherits any of it") {
  Database database;
  make_wanted(database, "job");
  NotifyingHolder holder(database);
  const AwaitedLock awaited[] = {{"job", holder.actor()}};
  const auto use_one = [&] {
    const auto before = descriptors();
    const auto listener = listener_of(database);
    REQUIRE(listener);
    static_cast<void>(listener->wait(awaited, soon(5ms)));
    for (const int descriptor : descriptors())
      if (!before.contains(descriptor)) CHECK_MESSAGE(closed_on_exec(descriptor), target_of(descriptor));
  };
  use_one();
  const auto open = count_descriptors();
  for (int i = 0; i < 3; ++i) use_one();
  CHECK(count_descriptors() == open);
}
