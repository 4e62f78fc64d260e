// What a fenced transaction means for others where rows are locked one by one.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <future>
#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a fence held open delays no renewal of another lease, and its own lease is kept by the transaction") {
  ServerDatabase database;
  auto engine = database->engine({.bound_idle = false});
  auto other = database->engine();
  const auto lease = 1500ms * slowness();
  auto fenced = engine.lock("fenced", {.lease = lease});
  auto free = engine.lock("free", {.lease = lease});
  Caller caller(database.server());
  caller.begin(database.server().beginnings().front());
  fenced.fence(caller.native());
  CHECK(eventually([&] { return fenced.lost().stop_requested(); }));
  CHECK(fenced.loss() == Loss::unconfirmed);
  CHECK(free.valid());
  CHECK_FALSE(other.try_lock("fenced"));
  caller.run("COMMIT");
  CHECK(free.valid());
  CHECK(free.release() == Released::freed);
}

TEST_CASE("a client that stops inside with_fence keeps others out no longer than the idle bound") {
  ServerDatabase database;
  if (!database.server().ends_silent_work()) return;  // until the server notices that the client is gone
  auto engine = database->engine();
  auto other = database->engine();
  database->admin().run("CREATE TABLE app (n bigint)");
  Caller caller(database.server());
  auto lock = engine.lock("a", {.lease = 2s * slowness(), .renew = false});
  std::promise<void> go_on;
  std::promise<void> inside;
  auto stopped = std::async(std::launch::async, [&] {
    return thrown_by([&] {
      lock.with_fence(caller.native(), [&] {
        caller.run("INSERT INTO app VALUES (1)");
        inside.set_value();
        go_on.get_future().wait();
      });
    });
  });
  inside.get_future().wait();
  const auto next = other.try_lock_for("a", 2min);
  go_on.set_value();
  REQUIRE(next);
  CHECK(next->token() > lock.token());
  const auto end = stopped.get();
  CHECK((end.fault == Fault::unavailable || end.fault == Fault::in_doubt || end.fault == Fault::lost));
  CHECK(database->admin().number("SELECT count(*) FROM app") == 0);
}

TEST_CASE("a row that another transaction has locked is busy, and costs the caller's transaction nothing it wrote") {
  ServerDatabase database;
  auto engine = database->engine();
  database->admin().run("CREATE TABLE app (n bigint)");
  Caller first(database.server()), second(database.server());
  first.begin(database.server().beginnings().front());
  REQUIRE(engine.try_lock_in(first.native(), "a"));
  for (const auto& setting : database.server().odd_session()) second.run(setting);
  second.begin(database.server().beginnings().front());
  second.run("INSERT INTO app VALUES (1)");
  CHECK_FALSE(engine.try_lock_in(second.native(), "a"));
  CHECK_FALSE(engine.try_lock_in(second.native(), "a", 200ms));
  second.run("INSERT INTO app VALUES (2)");
  first.run("COMMIT");
  CHECK(engine.try_lock_in(second.native(), "a", 1min));
  second.run("COMMIT");
  CHECK(database->admin().number("SELECT count(*) FROM app") == 2);
}

TEST_CASE(
    "a transaction that was fenced, or has locked a name, ends when it is idle for longer than the lease, and "
    "the next one does not") {
  ServerDatabase database;
  const auto idle = database.server().idle_bound();
  if (idle.empty()) return;  // no such bound of a caller's own transaction
  constexpr auto lease = 70s;
  auto engine = database->engine({.lease = lease});
  for (const bool native : {true, false}) {
    INFO("native: " << native);
    Caller caller(database.server());
    const auto unbound = caller.text(idle);
    const auto transaction = native ? caller.native() : TransactionRef(caller.runner());
    const auto inside = [&](const std::function<void()>& work) {
      caller.begin(database.server().beginnings().front());
      work();
      auto bound = caller.text(idle);
      caller.run("COMMIT");
      return bound;
    };
    const auto fence = [&] {
      auto lock = engine.lock("fenced", {.renew = false});
      return inside([&] { lock.fence(transaction); });
    };
    const auto take = [&] { return inside([&] { CHECK(engine.try_lock_in(transaction, "taken", 1min)); }); };
    CHECK(fence() == "70s");
    CHECK(caller.text(idle) == unbound);
    CHECK(take() == "70s");
    CHECK(caller.text(idle) == unbound);
    caller.run(database.server().bind_idle(50s));
    const auto shorter = caller.text(idle);
    CHECK(fence() == shorter);
    CHECK(take() == shorter);
  }
}

TEST_CASE("a transaction that waits for another name is not ended as idle, however long it may be silent") {
  ServerDatabase database;
  const std::chrono::seconds bound{slowness()};
  auto engine = database->engine();
  auto others = database->engine();
  const auto busy = others.lock("busy");
  database->admin().run("CREATE TABLE app (n bigint)");
  for (const bool native : {true, false}) {
    INFO("native: " << native);
    Caller caller(database.server());
    const auto transaction = native ? caller.native() : TransactionRef(caller.runner());
    const auto wait = [&] {
      caller.run("INSERT INTO app VALUES (1)");
      CHECK_FALSE(engine.try_lock_in(transaction, "busy", 2 * bound));
    };
    const auto in_vain = [&](const std::function<void()>& work) {
      caller.begin(database.server().beginnings().front());
      work();
      CHECK(caller.number("SELECT count(*) FROM app") == 1);
      caller.run("ROLLBACK");
    };
    in_vain([&] {
      CHECK(engine.try_lock_in(transaction, "mine", {}, {.lease = bound}));
      wait();
    });
    if (!native) continue;
    auto lock = engine.lock("fenced", {.lease = bound, .renew = false});
    lock.with_fence(transaction, wait);
    CHECK(database->admin().number("SELECT count(*) FROM app") == 1);
    database->admin().run("DELETE FROM app");
    caller.run(database.server().bind_idle(bound));
    in_vain(wait);
  }
}

TEST_CASE("a fence leaves the transaction's own wait for locks as it was") {
  ServerDatabase database;
  auto engine = database->engine();
  const auto busy = engine.lock("busy");
  for (const auto& beginning : database.server().beginnings()) {
    for (const bool native : {true, false}) {
      INFO(beginning.name << ", native: " << native);
      Caller caller(database.server());
      const auto transaction = native ? caller.native() : TransactionRef(caller.runner());
      caller.run(database.server().wait_for_locks());
      auto lock = engine.lock("fenced", {.renew = false});
      caller.begin(beginning);
      const auto before = caller.text(database.server().lock_wait());
      lock.fence(transaction);
      CHECK(caller.text(database.server().lock_wait()) == before);
      CHECK_FALSE(engine.try_lock_in(transaction, "busy"));
      CHECK(caller.text(database.server().lock_wait()) == before);
      caller.run("ROLLBACK");
      caller.begin(database.server().beginnings().front());
      CHECK(engine.try_lock_in(transaction, "free", 1min));
      CHECK(caller.text(database.server().lock_wait()) == before);
      caller.run("COMMIT");
    }
  }
}
