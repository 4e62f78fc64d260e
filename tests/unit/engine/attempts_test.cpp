// Tests of what an acquire makes of a row that it could not have: how often it looks at it, and what it tells then.
#include "engine/core.hpp"
#include "engine/fake_lock_table.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>

using namespace std::chrono_literals;
using namespace dlock::test;
using dlock::BootClock;
using dlock::Core;
using dlock::Duration;
using dlock::later;
using dlock::LockOptions;
using dlock::Mode;
using dlock::Name;
using dlock::store::AcquireRequest;
using dlock::store::Blocked;
using dlock::store::Granted;

namespace {

// A name that nobody holds, and whose row is found locked by so many looks in a row.
struct LockedRow {
  explicit LockedRow(int locked) : looks_left(locked) {
    table->instead_of_acquiring = [this](const AcquireRequest&) -> std::optional<Granted> {
      if (looks_left > 0) return Granted{std::nullopt, true};
      return then;
    };
    table->instead_of_blocked = [this]() -> std::optional<Blocked> {
      ++looks;
      if (looks_left > 0) --looks_left;
      return Blocked{true, {}, true};
    };
  }

  // `wait`: none for one attempt.
  dlock::engine::Acquired take(std::optional<Duration> wait, const LockOptions& options) {
    return core.acquire(Name("n"), options, {later(BootClock::now(), wait.value_or(1min)), {}, wait.has_value()});
  }

  int looks_left, looks = 0;
  std::optional<Granted> then{};  // what an attempt is told when the row is not locked any more; empty: it is granted
  std::shared_ptr<FakeLockTable> table = std::make_shared<FakeLockTable>();
  Core core{table, {.reentrance = dlock::Reentrance::none, .listen = false}};
};

const LockOptions writing{.renew = false}, reading{.mode = Mode::shared, .renew = false},
    slot{.mode = Mode::permits, .limit = 2, .renew = false};
const std::optional<Duration> waits[] = {std::nullopt, Duration{0}, Duration{50ms}};

}  // namespace

TEST_CASE("who would share a name does not give up after one look at a row that is locked just then") {
  for (const auto& options : {reading, slot})
    for (const auto& wait : waits) {
      LockedRow row(1);
      CHECK(row.take(wait, options));
      CHECK(row.looks == 1);
    }
}

TEST_CASE("it gives up after some looks in a row, and who wants the name alone after one") {
  for (const auto& options : {reading, slot})
    for (const auto& wait : waits) {
      LockedRow row(1000);
      const auto taken = row.take(wait, options);
      CHECK_FALSE(taken);
      CHECK(taken.row_locked);
      CHECK(row.looks >= 3);
      CHECK(row.looks <= 4);
    }
  for (const auto& wait : waits) {
    LockedRow row(1000);
    const auto taken = row.take(wait, writing);
    CHECK_FALSE(taken);
    CHECK(taken.row_locked);
    CHECK(row.looks == 1);
  }
}

TEST_CASE("who is refused by a holder at last is not told that the row is locked, as it was before") {
  for (const auto& wait : waits) {
    LockedRow row(1);
    row.then = Granted{};
    const auto taken = row.take(wait, reading);
    CHECK_FALSE(taken);
    CHECK_FALSE(taken.row_locked);
  }
}
