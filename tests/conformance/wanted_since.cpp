// The promise that a holder learns since when somebody waits for its lock, and in which mode.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

namespace wanted_since {

std::jthread waiting(Engine& engine, const LockOptions& options) {
  return std::jthread([&engine, options](const std::stop_token& stop) {
    const auto lock = engine.lock(stop, "job", options);
    CHECK_FALSE(lock);
  });
}

// A lock in one mode, that only extends its lease when it is told to.
LockOptions held_in(Mode mode) {
  LockOptions options{.lease = 1h, .renew = false};
  options.reentrance = mode == Mode::node ? Reentrance::node : Reentrance::none;
  if (mode != Mode::node) options.mode = mode;
  if (mode == Mode::permits) options.limit = 2;
  return options;
}

constexpr Mode all_modes[] = {Mode::exclusive, Mode::shared, Mode::permits, Mode::node};

}  // namespace wanted_since

}  // namespace

TEST_CASE("a renewal, and an extension, says how long the first of those who wait has waited, and the widest mode") {
  Database database;
  auto engine = database.engine();
  const auto table = database.table();
  for (const auto held : wanted_since::all_modes) {
    INFO(to_string(held));
    auto lock = engine.try_lock("job", wanted_since::held_in(held));
    REQUIRE(lock);
    const store::LeaseKey key{"job", lock->owner(), lock->token(), 1h, held};
    const auto told = [&](std::optional<Wanted> expected) {
      const auto begun = BootClock::now();
      for (const auto& renewal : {table->renew({&key, 1}, soon()).front(), table->extend(key, 1h, {}, soon())}) {
        CHECK(renewal == store::Renewed::yes);
        REQUIRE(renewal.wanted.has_value() == expected.has_value());
        if (!expected) continue;
        CHECK(renewal.wanted->mode == expected->mode);
        CHECK(renewal.wanted->waited >= expected->waited);
        CHECK(renewal.wanted->waited < expected->waited + (BootClock::now() - begun) + 1min);
      }
    };
    told({});
    Hand reader(*table, 1), writer(*table, 2), permits(*table, 3), second(*table, 4);
    reader.reading().having_waited(2h).draw_ticket();
    told(Wanted{2h, Mode::shared});
    second.reading().having_waited(3h).add();
    told(Wanted{3h, Mode::shared});
    writer.having_waited(1h).add();
    told(Wanted{3h, Mode::exclusive});
    second.remove();
    told(Wanted{2h, Mode::exclusive});
    reader.remove();
    told(Wanted{1h, Mode::exclusive});
    permits.wanting(1, 2).having_waited(4h).draw_ticket();
    told(Wanted{4h, Mode::exclusive});
    writer.remove();
    told(Wanted{4h, Mode::permits});
    reader.having_waited(5h).draw_ticket();
    told(Wanted{5h, Mode::permits});
    permits.remove();
    told(Wanted{5h, Mode::shared});
    reader.remove();
    told({});
    CHECK(lock->release() == Released::freed);
  }
}

TEST_CASE("what several hold tells each of them the same, and of nobody who holds it too") {
  Database database;
  auto engine = database.engine();
  const auto table = database.table();
  for (const auto mode : {Mode::shared, Mode::permits}) {
    INFO(to_string(mode));
    const auto options = wanted_since::held_in(mode);
    auto one = engine.try_lock("job", options), two = engine.try_lock("job", options);
    auto elsewhere = engine.try_lock("quiet", options);
    REQUIRE((one && two && elsewhere));
    std::vector<store::LeaseKey> keys;
    for (const auto* lock : {&*one, &*elsewhere, &*two})
      keys.push_back({lock->name(), lock->owner(), lock->token(), 1h, mode});
    // The row of a wait that is over.
    Hand left(*table, 1), waits(*table, 2);
    left.as(one->owner()).add();
    for (const auto& renewal : table->renew(keys, soon())) CHECK(renewal == store::Renewal(store::Renewed::yes));
    for (const auto& key : keys) CHECK(table->extend(key, 1h, {}, soon()) == store::Renewal(store::Renewed::yes));
    waits.having_waited(1h).draw_ticket();
    const auto renewed = table->renew(keys, soon());
    REQUIRE(renewed.size() == 3);
    CHECK(renewed[1] == store::Renewal(store::Renewed::yes));
    for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
      REQUIRE(renewed[i].wanted);
      CHECK(renewed[i].wanted->mode == Mode::exclusive);
      CHECK(renewed[i].wanted->waited >= 1h);
    }
    left.remove();
    waits.remove();
    for (auto* lock : {&*one, &*two, &*elsewhere}) lock->release();
  }
}

TEST_CASE("a wait counts from its call, also before it had a row and before any renewal") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  auto lock = engine.try_lock("job", {.lease = 1h, .renew = false});
  REQUIRE(lock);
  const auto before = BootClock::now();
  const auto waiting = wanted_since::waiting(other, {});
  // Who is in no queue is seen once it has waited for a second.
  REQUIRE(eventually([&] { return !engine.waiters("job").empty(); }));
  CHECK(engine.waiters("job").front().waited >= 1s);
  CHECK_FALSE(lock->wanted());
  lock->extend(1h);
  const auto told = lock->wanted();
  REQUIRE(told);
  CHECK(told->waited >= 1s);
  CHECK(told->waited <= BootClock::now() - before + 10ms);  // two clocks
  // It goes on without another answer.
  CHECK(eventually([&] { return lock->wanted() && lock->wanted()->waited > told->waited + 20ms; }));
  const auto longer = lock->wanted()->waited;  // read before the clock is
  CHECK(longer <= BootClock::now() - before + 10ms);
}

TEST_CASE("a ticket counts from when it was drawn") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  auto lock = engine.try_lock("job", {.lease = 1h, .renew = false});
  REQUIRE(lock);
  const auto before = BootClock::now();
  const auto waiting = wanted_since::waiting(other, {.mode = Mode::shared, .fairness = Fairness::fifo});
  REQUIRE(eventually([&] { return !engine.waiters("job").empty(); }));
  const auto seen = BootClock::now();
  REQUIRE(eventually([&] { return BootClock::now() > seen + 300ms; }));
  lock->extend(1h);
  const auto told = lock->wanted();
  REQUIRE(told);
  CHECK(told->mode == Mode::shared);
  CHECK(told->waited >= 290ms);  // two clocks
  CHECK(told->waited <= BootClock::now() - before + 10ms);
}

TEST_CASE("an exclusive holder for which only readers wait shares the lock, and is told of a writer then") {
  Database database;
  auto engine = database.engine(), other = database.engine(), third = database.engine();
  auto options = renewed_often();
  options.reentrance = Reentrance::none;
  auto lock = engine.try_lock("job", options);
  REQUIRE(lock);
  std::optional<Lock> reader;
  std::jthread reading([&] { reader = other.lock("job", {.mode = Mode::shared}); });
  REQUIRE(eventually([&] { return lock->wanted().has_value(); }));
  CHECK(lock->wanted()->mode == Mode::shared);
  lock->downgrade();
  reading.join();
  REQUIRE(reader);
  CHECK(eventually([&] { return !lock->wanted(); }));
  {
    const auto writing = wanted_since::waiting(third, {});
    REQUIRE(eventually([&] { return lock->wanted().has_value(); }));
    CHECK(lock->wanted()->mode == Mode::exclusive);
  }
  CHECK(eventually([&] { return !lock->wanted(); }));
  reader->release();
  lock->release();
}

TEST_CASE("those who wait in the same process count from their call, each with its mode, without a statement") {
  Database database;
  auto engine = database.engine();
  const auto lock = engine.try_lock("job", {.lease = 1h, .renew = false});
  REQUIRE(lock);
  const auto mode_is = [&](Mode mode) {
    return eventually([&] { return lock->wanted() && lock->wanted()->mode == mode; });
  };
  const auto before = BootClock::now();
  const auto reading = wanted_since::waiting(engine, {.mode = Mode::shared});
  CHECK(mode_is(Mode::shared));
  const auto seen = BootClock::now();
  {
    auto permits = wanted_since::waiting(engine, {.mode = Mode::permits, .limit = 2});
    CHECK(mode_is(Mode::permits));
    {
      const auto writing = wanted_since::waiting(engine, {});
      CHECK(mode_is(Mode::exclusive));
      const auto least = std::chrono::floor<Duration>(BootClock::now() - seen);
      CHECK(lock->wanted()->waited >= least);  // the first of them
    }
    CHECK(mode_is(Mode::permits));
  }
  CHECK(mode_is(Mode::shared));
  const auto waited = lock->wanted()->waited;  // read before the clock is
  CHECK(waited <= BootClock::now() - before);
}
