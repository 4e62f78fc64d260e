// The promise that an uncontended acquire, renewal and release are one round trip each, counted in the
// protocol between client and server.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// An engine behind a counting proxy, with everything prepared that can be.
struct Counted {
  ServerDatabase database{};
  Proxy proxy{database.server()};
  Engine engine{database.server().url_at(proxy.address()),
                {.lease = 1h, .connections = 1, .timeouts = {.request = 1min, .release = 1min}}};

  Counted() {
    auto lock = engine.try_lock("warm");
    lock->extend(1h);
    lock->release();
  }

  template <class Work>
  std::size_t round_trips(Work work) {
    const auto before = proxy.requests();
    work();
    return proxy.requests() - before;
  }
};

}  // namespace

TEST_CASE("an uncontended acquire is one round trip, and so is a release") {
  Counted counted;
  std::optional<Lock> lock;
  for (const char* name : {"new", "new", "another"}) {
    CHECK(counted.round_trips([&] { lock = counted.engine.try_lock(name); }) == 1);
    REQUIRE(lock);
    CHECK(counted.round_trips([&] { CHECK(lock->release() == Released::freed); }) == 1);
    CHECK(counted.round_trips([&] { lock.reset(); }) == 0);
  }
}

TEST_CASE("several free names take as many round trips as two do, to be granted, and one to be released") {
  Counted counted;
  const std::vector<std::string> names{"a", "b", "c", "d", "e", "f"};
  for (int i = 0; i < 4; ++i) counted.engine.lock_all(names).release();  // prepares all that is asked on the way
  std::optional<LockSet> set;
  for (int i = 0; i < 3; ++i) {
    // A look, and the grant; before that, on MariaDB, now and then a cheaper way to it that may be in vain.
    CHECK(counted.round_trips([&] { set = counted.engine.try_lock_all(names); }) <= 3);
    REQUIRE(set);
    CHECK(counted.round_trips([&] { CHECK(set->release() == Released::freed); }) == 1);
    CHECK(counted.round_trips([&] { set.reset(); }) == 0);
  }
  auto other = counted.database->engine();
  const auto lock = other.lock("c");
  CHECK(counted.round_trips([&] { CHECK_FALSE(counted.engine.try_lock_all(names)); }) == 1);
}

TEST_CASE("a name that is used again and again is one round trip each time, and so is its release") {
  Counted counted;
  for (int i = 0; i < 4; ++i) counted.engine.try_lock("job").reset();  // prepares all that is asked on the way
  std::optional<Lock> lock;
  for (int i = 0; i < 8; ++i) {
    CHECK(counted.round_trips([&] { lock = counted.engine.try_lock("job"); }) == 1);
    REQUIRE(lock);
    CHECK(counted.round_trips([&] { lock.reset(); }) == 1);
  }
}

TEST_CASE("the destructor releases in one round trip") {
  Counted counted;
  auto lock = counted.engine.try_lock("job");
  CHECK(counted.round_trips([&] { lock.reset(); }) == 1);
}

TEST_CASE("from thread to thread of an engine a lock goes in one round trip") {
  Counted counted;
  constexpr int threads = 4, each = 50;
  std::size_t all = 0;
  // Sixteen times in a row; then it is freed, looked at and acquired. A thread that has not lain down yet when its turn
  // comes costs some more, so it may take a few runs until none does that often.
  const bool few = eventually([&] {
    all = counted.round_trips([&] {
      in_parallel(threads, [&](int) {
        for (int i = 0; i < each; ++i) counted.engine.lock("job").release();
      });
    });
    return all <= threads * each * 3 / 2;
  });
  CHECK_MESSAGE(few, all);
}

TEST_CASE("to enter again what the thread holds is no round trip, and so is leaving it") {
  Counted counted;
  auto outer = counted.engine.try_lock("job");
  std::optional<Lock> inner;
  CHECK(counted.round_trips([&] { inner = counted.engine.try_lock("job"); }) == 0);
  REQUIRE(inner);
  CHECK(counted.round_trips([&] { CHECK(inner->release() == Released::still_held); }) == 0);
  CHECK(counted.round_trips([&] { CHECK(outer->release() == Released::freed); }) == 1);
}

TEST_CASE("each entry of a node is one round trip, and so is leaving it") {
  Counted counted;
  const LockOptions node{.reentrance = Reentrance::node};
  counted.engine.try_lock("warm", node).reset();
  auto first = counted.engine.try_lock("warm", node);
  auto second = counted.engine.try_lock("warm", node);
  second.reset();
  first.reset();
  CHECK(counted.round_trips([&] { first = counted.engine.try_lock("job", node); }) == 1);
  REQUIRE(first);
  CHECK(counted.round_trips([&] { second = counted.engine.try_lock("job", node); }) == 1);
  REQUIRE(second);
  CHECK(counted.round_trips([&] { CHECK(second->release() == Released::still_held); }) == 1);
  CHECK(counted.round_trips([&] { CHECK(first->release() == Released::freed); }) == 1);
}

TEST_CASE("to come in where others are is one round trip, as a reader and with permits, and so is leaving") {
  Counted counted;
  for (const LockOptions& options :
       {LockOptions{.mode = Mode::shared}, LockOptions{.mode = Mode::permits, .permits = 1, .limit = 3}}) {
    counted.engine.try_lock("warm", options)->release();  // prepares all that is asked on the way
    const auto name = std::string(to_string(options.mode));
    auto other = counted.database->engine();
    const auto there = other.lock(name, options);
    std::optional<Lock> lock;
    for (int i = 0; i < 3; ++i) {
      CHECK(counted.round_trips([&] { lock = counted.engine.try_lock(name, options); }) == 1);
      REQUIRE(lock);
      CHECK(counted.round_trips([&] { CHECK(lock->release() == Released::freed); }) == 1);
    }
  }
}

TEST_CASE("a takeover of an expired lease is one round trip") {
  Counted counted;
  counted.engine.try_lock("job", {.renew = false})->detach();
  counted.database->admin().expire("job");
  std::optional<Lock> lock;
  CHECK(counted.round_trips([&] { lock = counted.engine.try_lock("job"); }) == 1);
  CHECK(lock);
}

TEST_CASE("a busy answer is one round trip, and one more for who holds the lock") {
  Counted counted;
  auto other = counted.database->engine();
  const auto lock = other.try_lock("job"), second = other.try_lock("second");
  Refusal refusal;
  for (int i = 0; i < 2; ++i) CHECK_FALSE(counted.engine.try_lock("job", {}, &refusal));  // prepares both statements
  CHECK(counted.round_trips([&] { CHECK_FALSE(counted.engine.try_lock("second")); }) == 1);
  CHECK(counted.round_trips([&] { CHECK_FALSE(counted.engine.try_lock("job")); }) == 1);
  CHECK(counted.round_trips([&] { CHECK_FALSE(counted.engine.try_lock("job", {}, &refusal)); }) == 2);
}

TEST_CASE("a renewal is one round trip, of one lease or of fifty") {
  Counted counted;
  const auto table = open_table(counted.database.server().url_at(counted.proxy.address()), 1);
  std::vector<Lock> locks;
  for (const std::size_t leases : {std::size_t{1}, std::size_t{50}}) {
    while (locks.size() < leases)
      locks.push_back(counted.engine.lock("job " + std::to_string(locks.size()), {.renew = false}));
    std::vector<store::LeaseKey> claims;
    for (const auto& lock : locks) claims.push_back({lock.name(), lock.owner(), lock.token(), 30s});
    const std::vector<store::Renewal> all(leases, store::Renewed::yes);
    const auto deadline = later(BootClock::now(), 1min);
    CHECK(table->renew(claims, deadline) == all);
    CHECK(counted.round_trips([&] { CHECK(table->renew(claims, deadline) == all); }) == 1);
  }
}

TEST_CASE("a renewal is one round trip of fifty readers, too") {
  Counted counted;
  std::vector<Lock> locks;
  std::vector<store::LeaseKey> keys;
  for (int i = 0; i < 50; ++i) locks.push_back(counted.engine.lock("read", {.mode = Mode::shared, .renew = false}));
  std::vector<std::string> owners;
  for (const auto& lock : locks) owners.push_back(lock.owner());
  for (std::size_t i = 0; i < locks.size(); ++i)
    keys.push_back({"read", owners[i], locks[i].token(), 1h, Mode::shared});
  const auto table = open_table(counted.database.server().url_at(counted.proxy.address()), 1);
  for (int i = 0; i < 3; ++i) {
    std::vector<store::Renewal> renewed;
    const auto trips = counted.round_trips([&] { renewed = table->renew(keys, soon()); });
    CHECK(std::count(renewed.begin(), renewed.end(), store::Renewed::yes) == 50);
    if (i > 0) CHECK(trips == 1);  // at first it connects
  }
}

TEST_CASE("a renewal is one round trip of ten thousand readers") {
  Counted counted;
  const auto lock = counted.engine.lock("read", {.mode = Mode::shared, .renew = false});
  const std::string digits =
      "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 "
      "UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9) ";
  // Where the first one is, the others are, under owners that count.
  counted.database->admin().run(
      "INSERT INTO resource_lock_holder (name, owner, gate, token, mode, acquired_at, expires_at, lease_us) "
      "SELECT h.name, CONCAT('" +
      std::string(28, '0') +
      "', k.d, l.d, m.d, n.d), h.gate, h.token, h.mode, h.acquired_at, "
      "h.expires_at, h.lease_us FROM resource_lock_holder h, " +
      digits + "k, " + digits + "l, " + digits + "m, " + digits + "n");
  std::vector<std::string> owners;
  std::vector<store::LeaseKey> keys;
  for (int i = 0; i < 10'000; ++i) owners.push_back(fmt::format("{:032}", i));
  for (const auto& owner : owners) keys.push_back({"read", owner, lock.token(), 1h, Mode::shared});
  const auto table = open_table(counted.database.server().url_at(counted.proxy.address()), 1);
  const auto deadline = later(BootClock::now(), 2min);
  CHECK(table->renew(std::span(keys).first(1), deadline) ==
        std::vector<store::Renewal>{store::Renewed::yes});  // connects
  std::vector<store::Renewal> renewed;
  CHECK(counted.round_trips([&] { renewed = table->renew(keys, deadline); }) == 1);
  CHECK(std::count(renewed.begin(), renewed.end(), store::Renewed::yes) == 10'000);
  auto& admin = counted.database->admin();
  const std::string ours = " FROM resource_lock_holder WHERE owner < '" + std::string(27, '0') + "2'";
  CHECK(admin.number("SELECT count(*)" + ours + " AND expires_at - acquired_at >= 3600000000") == 10'000);
  admin.run("DELETE" + ours);
}

TEST_CASE("a renewal, and an extension, that tells of those who wait is one round trip too") {
  Counted counted;
  const auto table = open_table(counted.database.server().url_at(counted.proxy.address()), 1);
  std::vector<Lock> locks;
  std::vector<store::LeaseKey> claims;
  for (int i = 0; i < 50; ++i) locks.push_back(counted.engine.lock("job " + std::to_string(i), {.renew = false}));
  for (const auto& lock : locks) claims.push_back({lock.name(), lock.owner(), lock.token(), 30s});
  Hand first(*table, 1, "job 1"), last(*table, 2, "job 49");
  first.draw_ticket();
  last.draw_ticket();
  const std::vector<std::size_t> both{1, 49};
  const auto deadline = later(BootClock::now(), 1min);
  const auto renew = [&] {
    std::vector<std::size_t> wanted;
    const auto renewed = table->renew(claims, deadline);
    for (std::size_t i = 0; i < renewed.size(); ++i) {
      CHECK(renewed[i] == store::Renewed::yes);
      if (renewed[i].wanted) wanted.push_back(i);
    }
    return wanted;
  };
  CHECK(renew() == both);
  CHECK(counted.round_trips([&] { CHECK(renew() == both); }) == 1);
  for (const std::size_t lock : {std::size_t{0}, std::size_t{1}}) {
    const auto extend = [&] {
      const auto extended = table->extend(claims[lock], 30s, {}, deadline);
      CHECK(extended == store::Renewed::yes);
      CHECK(extended.wanted.has_value() == (lock == 1));
    };
    extend();
    CHECK(counted.round_trips(extend) == 1);
  }
}

TEST_CASE("an engine renews its fifty leases by one statement a round") {
  Counted counted;
  std::vector<Lock> locks;
  const Duration lease = 6s * slowness();
  for (int i = 0; i < 50; ++i) locks.push_back(counted.engine.lock("job " + std::to_string(i), {.lease = lease}));
  auto& admin = counted.database->admin();
  const auto least_renewed = [&] {
    return admin.number("SELECT min(expires_at) FROM resource_lock WHERE owner IS NOT NULL");
  };
  const auto begun = least_renewed();
  const auto before = counted.proxy.requests();
  CHECK(eventually([&] { return least_renewed() > begun + lease.count() / 2; }));  // at least one round for each
  CHECK(counted.proxy.requests() - before < 10);
  for (const auto& lock : locks) CHECK(lock.valid());
}

TEST_CASE("in a caller's transaction a fence is two round trips at most, and a lock four") {
  ServerDatabase database;
  Proxy proxy(database.server());
  auto engine = database->engine();
  auto lock = engine.lock("fenced");
  Caller caller(database.server(), proxy.address());
  const auto round_trips = [&](auto work) {
    const auto before = proxy.requests();
    work();
    return proxy.requests() - before;
  };
  // Where a session has a clock of its own it is looked at again before and after a take that takes its time.
  const bool looks = !database.server().stop_clock().empty();
  for (const auto& beginning : database.server().beginnings()) {
    INFO(beginning.name);
    caller.begin(beginning);
    CHECK(round_trips([&] { lock.fence(caller.native()); }) <= 2);
    CHECK(round_trips([&] { CHECK(engine.try_lock_in(caller.native(), "taken")); }) <= (looks ? 6 : 4));
    caller.run("COMMIT");
    // How many a runner makes of a statement is its own affair.
    int statements = 0;
    SqlRunner counting = caller.runner();
    counting.run = [&statements, run = counting.run](std::string_view sql) { return ++statements, run(sql); };
    caller.begin(beginning);
    lock.fence(counting);
    CHECK(std::exchange(statements, 0) <= 7);
    CHECK(engine.try_lock_in(counting, "taken"));
    CHECK(statements <= (looks ? 14 : 8));
    caller.run("COMMIT");
  }
}

TEST_CASE("what is refused for its arguments sends nothing") {
  Counted counted;
  const auto sends_nothing = [&](auto call) {
    CHECK(counted.round_trips([&] { CHECK(thrown_by(call).fault == Fault::misuse); }) == 0);
  };
  auto& engine = counted.engine;
  const Grant grant{Token{1}, std::string(32, 'a')};
  for (const auto& name : {std::string{}, std::string(256, 'x'), std::string("\xFF"), std::string(1, '\0')}) {
    sends_nothing([&] { engine.try_lock(name); });
    sends_nothing([&] { engine.try_lock_for(name, 1s); });
    sends_nothing([&] { engine.wait_free(name, 1s); });
    sends_nothing([&] { engine.inspect(name); });
    sends_nothing([&] { engine.adopt(name, grant); });
    sends_nothing([&] { engine.renew(name, grant); });
    sends_nothing([&] { engine.force_release(name, Token{1}); });
  }
  sends_nothing([&] { engine.try_lock("job", {.lease = Duration{1}}); });
  sends_nothing([&] { engine.try_lock("job", {.at_least = Duration{-1}}); });
  sends_nothing([&] { engine.try_lock("job", {.metadata = std::string(4097, 'x')}); });
  sends_nothing([&] { engine.try_lock("job", {.label = "\xFF"}); });
  sends_nothing([&] { engine.try_lock_for("job", Duration{-1}); });
  sends_nothing([&] { engine.adopt("job", grant, {.lease = Duration{1}}); });
  sends_nothing([&] { engine.renew("job", grant, Duration{1}); });
  for (const char* owner : {"", "0123456789ABCDEF0123456789abcdef", "0123456789abcdef0123456789abcde"}) {
    sends_nothing([&] { engine.adopt("job", {Token{1}, owner}); });
    sends_nothing([&] { engine.renew("job", {Token{1}, owner}); });
  }
  sends_nothing([&] { engine.reap(0); });
}
