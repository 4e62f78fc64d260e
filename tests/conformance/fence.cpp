// The promise of the fence: what is committed behind it was written under the lock, and a lost lock
// cannot commit.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <exception>
#include <utility>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

struct Scene {
  Database database{};
  Engine engine = database.engine();
  Engine other = database.engine({.timeouts = {.request = time_in_vain()}});
  Scene() { database.admin().run("CREATE TABLE app (n bigint)"); }

  long long stored() { return database.admin().number("SELECT count(*) FROM app"); }
  std::vector<Beginning> beginnings() { return database.test_database().beginnings(); }
};

const auto unrenewed = 1000ms * slowness();

}  // namespace

TEST_CASE("while a fenced transaction is open nobody else is granted the lock, although its lease has expired") {
  Scene scene;
  auto engine = scene.database.engine({.bound_idle = false});
  for (const auto& beginning : scene.beginnings()) {
    INFO(beginning.name);
    Caller caller(scene.database.test_database());
    Lock lock;
    REQUIRE(eventually([&] {  // who is too slow for the lease begins anew
      lock = engine.lock("a", {.lease = unrenewed, .renew = false});
      caller.begin(beginning);
      const auto late = thrown_by([&] { lock.fence(caller.native(), {.doom = false}); });
      if (!late.fault) return true;
      REQUIRE(late.fault == Fault::lost);
      caller.run("ROLLBACK");
      return false;
    }));
    caller.run("INSERT INTO app VALUES (1)");
    CHECK(eventually([&] { return lock.remaining() == Duration{}; }));
    // The lease has been over for a while by the database's clock too.
    CHECK(granted_nothing([&] { return scene.other.try_lock_for("a", 2 * unrenewed).has_value(); }));
    const auto before = scene.stored();
    caller.run("COMMIT");
    CHECK(scene.stored() == before + 1);
    const auto next = scene.other.try_lock_for("a", 1min);
    REQUIRE(next);
    CHECK(next->token() > lock.token());
  }
}

TEST_CASE("a lost lock cannot commit: the fence throws, and not even a swallowed exception stores anything") {
  Scene scene;
  for (const auto& beginning : scene.beginnings()) {
    for (const bool forced : {false, true}) {
      INFO(beginning.name << ", forced: " << forced);
      Caller caller(scene.database.test_database());
      auto lock = scene.engine.lock("a", {.lease = 10min, .renew = false});
      if (forced) CHECK(scene.other.force_release("a", lock.token()));
      else scene.database.admin().expire("a");
      auto next = scene.other.try_lock_for("a", 1min);
      REQUIRE(next);
      caller.begin(beginning);
      caller.run("INSERT INTO app VALUES (1)");
      const auto refused = thrown_by([&] { lock.fence(caller.native()); });
      CHECK(refused.fault == Fault::lost);
      CHECK(refused.names("roll the transaction back"));
      CHECK_FALSE(lock.valid());
      CHECK(lock.loss());
      caller.run_anyway("COMMIT");
      CHECK(scene.stored() == 0);
      CHECK(next->release() == Released::freed);
    }
  }
}

TEST_CASE("after a refused fence and a rollback the lock can be taken and fenced anew") {
  Scene scene;
  for (const auto& beginning : scene.beginnings()) {
    INFO(beginning.name);
    auto caller = std::make_unique<Caller>(scene.database.test_database());
    auto lock = scene.engine.lock("a");
    CHECK(scene.other.force_release("a", lock.token()));
    caller->begin(beginning);
    CHECK(thrown_by([&] { lock.fence(caller->native()); }).fault == Fault::lost);
    try {
      caller->run("ROLLBACK");
      caller->number("SELECT 1");
    } catch (const std::exception&) {  // the connection was ended to make sure: the application opens another one
      caller = std::make_unique<Caller>(scene.database.test_database());
    }
    auto again = scene.engine.lock("a");
    const auto before = scene.stored();
    caller->begin(beginning);
    again.fence(caller->native());
    caller->run("INSERT INTO app VALUES (1)");
    caller->run("COMMIT");
    CHECK(scene.stored() == before + 1);
  }
}

TEST_CASE("a renewal after the transaction's snapshot is conflict or fenced, and the transaction can be run again") {
  Scene scene;
  for (const auto& beginning : scene.beginnings()) {
    if (!beginning.early_snapshot) continue;
    INFO(beginning.name);
    Caller caller(scene.database.test_database());
    auto lock = scene.engine.lock("a", {.lease = 5min, .renew = false});
    caller.begin(beginning);
    caller.number("SELECT count(*) FROM app");
    lock.extend(10min);
    const auto first = thrown_by([&] { lock.fence(caller.native(), {.doom = false}); });
    if (first.fault) {
      CHECK(first.fault == Fault::conflict);
      caller.run("ROLLBACK");
      caller.begin(beginning);
      lock.fence(caller.native());
    }
    caller.run("INSERT INTO app VALUES (1)");
    caller.run("COMMIT");
    CHECK(lock.valid());
  }
}

TEST_CASE("a lock that is granted after the transaction's snapshot is no lost one, and can be fenced by the next") {
  Scene scene;
  const std::vector<LockOptions> kinds{
      {}, {.mode = Mode::shared}, {.mode = Mode::permits, .limit = 2}, {.reentrance = Reentrance::node}};
  int names = 0;
  for (const auto& beginning : scene.beginnings()) {
    if (!beginning.early_snapshot) continue;
    for (auto options : kinds) {
      options.renew = false;
      for (const bool known : {true, false}) {
        INFO(beginning.name << ", as " << to_string(options.mode) << (known ? ", a row that was there" : ""));
        const auto name = "b" + std::to_string(++names);
        if (known) CHECK(scene.engine.lock(name).release() == Released::freed);
        Caller caller(scene.database.test_database());
        caller.begin(beginning);
        caller.number("SELECT count(*) FROM app");
        auto lock = scene.engine.lock(name, options);
        const auto first = thrown_by([&] { lock.fence(caller.native()); });
        CHECK_MESSAGE((!first.fault || first.fault == Fault::conflict), first.text);
        CHECK(lock.valid());
        caller.run_anyway(first.fault ? "COMMIT" : "ROLLBACK");
        caller.begin(beginning);
        lock.fence(caller.native());
        caller.run("COMMIT");
        CHECK(lock.release() == Released::freed);
      }
    }
  }
}

TEST_CASE("a conflict does not let anything be stored either") {
  Scene scene;
  for (const auto& beginning : scene.beginnings()) {
    if (!beginning.early_snapshot) continue;
    INFO(beginning.name);
    Caller caller(scene.database.test_database());
    auto lock = scene.engine.lock("a", {.lease = 5min, .renew = false});
    caller.begin(beginning);
    caller.number("SELECT count(*) FROM app");
    lock.extend(10min);
    const auto first = thrown_by([&] { lock.fence(caller.native()); });
    if (!first.fault) {  // this database shows the fence what is committed
      caller.run("ROLLBACK");
      continue;
    }
    CHECK(first.fault == Fault::conflict);
    try {
      caller.run("INSERT INTO app VALUES (1)");
    } catch (const std::exception&) {}
    caller.run_anyway("COMMIT");
    CHECK(scene.stored() == 0);
  }
}

TEST_CASE("with_fence begins, fences, works and commits, and counts the renewal on the way") {
  Scene scene;
  Caller caller(scene.database.test_database());
  const auto settings = caller.text(scene.database.test_database().session_state());
  auto lock = scene.engine.lock("a", {.lease = 2h, .renew = false});
  BootClock::ahead += std::chrono::nanoseconds{1h}.count();
  CHECK(lock.remaining() < 1h);
  lock.with_fence(caller.native(), [&] { caller.run("INSERT INTO app VALUES (1)"); });
  CHECK(scene.stored() == 1);
  CHECK(lock.remaining() > 90min);
  lock.with_fence(caller.runner(), [&] { caller.run("INSERT INTO app VALUES (2)"); });
  CHECK(scene.stored() == 2);
  CHECK(caller.text(scene.database.test_database().session_state()) == settings);
}

TEST_CASE("with_fence leaves the session's settings as they were, however the work ends") {
  Scene scene;
  Caller caller(scene.database.test_database());
  const auto settings = [&] { return caller.text(scene.database.test_database().session_state()); };
  const auto before = settings();
  auto longer = scene.engine.lock("a", {.lease = 2h});
  auto shorter = scene.engine.lock_all({"a", "b"}, {.lease = 1h});
  for (const bool native : {true, false}) {
    INFO("native: " << native);
    const auto transaction = native ? caller.native() : TransactionRef(caller.runner());
    shorter.with_fence(transaction, [] {});
    CHECK(settings() == before);
    CHECK_THROWS_AS(shorter.with_fence(transaction, [] { throw std::runtime_error("no"); }), std::runtime_error);
    CHECK(settings() == before);
    int runs = 0;
    longer.with_fence(transaction, [&] {
      if (++runs == 1) throw Error(Fault::conflict, "once more");
    });
    CHECK(runs == 2);
    CHECK(settings() == before);
    CHECK_THROWS_AS(longer.with_fence(transaction, [&] { caller.run("ROLLBACK"); }), Error);
    CHECK(settings() == before);
  }
}

TEST_CASE("a committed fence has renewed the row, by the length of the lease") {
  Scene scene;
  auto& admin = scene.database.admin();
  for (const auto& beginning : scene.beginnings()) {
    for (const bool native : {true, false}) {
      INFO(beginning.name << ", native: " << native);
      Caller caller(scene.database.test_database());
      const auto fence = [&](Lock& lock, const char* end) {
        caller.begin(beginning);
        if (native) lock.fence(caller.native());
        else lock.fence(caller.runner());
        caller.run(end);
      };
      auto lock = scene.engine.lock("a", {.lease = 1h, .renew = false});
      admin.age("a", 30min);
      const auto before = admin.expires_at("a");
      fence(lock, "ROLLBACK");
      CHECK(admin.expires_at("a") == before);
      fence(lock, "COMMIT");
      CHECK(admin.expires_at("a") >= before + 29min);
      CHECK(lock.release() == Released::freed);
    }
  }
}

TEST_CASE("what with_fence has renewed is trusted from its fence, however long the work takes") {
  Scene scene;
  Caller caller(scene.database.test_database());
  for (const bool native : {true, false}) {
    INFO("native: " << native);
    auto lock = scene.engine.lock("b", {.lease = 2h, .renew = false});
    const auto work = [] { BootClock::ahead += std::chrono::nanoseconds{1h}.count(); };
    if (native) lock.with_fence(caller.native(), work);
    else lock.with_fence(caller.runner(), work);
    CHECK(lock.remaining() < 1h);
    CHECK(lock.remaining() > 30min);
  }
}

TEST_CASE("while a fence is on its way its own lease is not renewed") {
  Scene scene;
  auto& admin = scene.database.admin();
  for (const auto& beginning : scene.beginnings()) {
    if (beginning.name == "immediate") continue;  // who writes there writes alone
    INFO(beginning.name);
    Caller caller(scene.database.test_database());
    auto other = scene.engine.lock("other", renewed_often());
    auto lock = scene.engine.lock("a", renewed_often());
    bool looked = false;
    SqlRunner runner = caller.runner();
    runner.run = [&, run = runner.run](std::string_view sql) {
      if (!std::exchange(looked, true)) {
        const auto before = admin.expires_at("a"), others = admin.expires_at("other");
        CHECK(eventually([&] { return admin.expires_at("other") > others + 100ms; }));  // a few renewals
        CHECK(admin.expires_at("a") == before);
      }
      return run(sql);
    };
    caller.begin(beginning);
    lock.fence(runner);
    CHECK(looked);
    caller.run("COMMIT");
    const auto fenced = admin.expires_at("a");
    CHECK(eventually([&] { return admin.expires_at("a") > fenced; }));
    CHECK(lock.valid());
  }
}

TEST_CASE("with_fence rolls back what throws, and repeats what is in conflict") {
  Scene scene;
  Caller caller(scene.database.test_database());
  auto lock = scene.engine.lock("a");
  CHECK_THROWS_WITH_AS(lock.with_fence(caller.native(),
                                       [&] {
                                         caller.run("INSERT INTO app VALUES (1)");
                                         throw std::runtime_error("mine");
                                       }),
                       "mine", std::runtime_error);
  CHECK(scene.stored() == 0);
  int runs = 0;
  lock.with_fence(caller.native(), [&] {
    caller.run("INSERT INTO app VALUES (1)");
    if (++runs < 3) throw Error(Fault::conflict, "again");
  });
  CHECK(runs == 3);
  CHECK(scene.stored() == 1);
  runs = 0;
  const auto given_up = thrown_by([&] {
    lock.with_fence(caller.native(),
                    [&] {
                      ++runs;
                      throw Error(Fault::conflict, "always");
                    },
                    {.attempts = 4});
  });
  CHECK(given_up.fault == Fault::conflict);
  CHECK(runs == 4);
  CHECK(lock.valid());
}

TEST_CASE("with_fence never runs the work under a lost lock") {
  Scene scene;
  Caller caller(scene.database.test_database());
  auto lock = scene.engine.lock("a");
  CHECK(scene.other.force_release("a", lock.token()));
  bool ran = false;
  CHECK(thrown_by([&] { lock.with_fence(caller.native(), [&] { ran = true; }); }).fault == Fault::lost);
  CHECK_FALSE(ran);
}

TEST_CASE("the fence as text proves the lease for any other driver, and is refused for a lost one") {
  Scene scene;
  Caller caller(scene.database.test_database());
  auto lock = scene.engine.lock("it's \\ \"ours\"");
  const auto sql = lock.fence_sql();
  for (const auto& beginning : scene.beginnings()) {
    INFO(beginning.name);
    caller.begin(beginning);
    CHECK(caller.runner().run(sql) == std::vector<std::optional<std::string>>{"1"});
    caller.run("COMMIT");
  }
  CHECK(scene.other.force_release(lock.name(), lock.token()));
  caller.begin(scene.beginnings().front());
  bool refused = false;
  try {
    refused = caller.runner().run(sql) == std::vector<std::optional<std::string>>{"0"};
  } catch (const std::exception&) { refused = true; }
  CHECK(refused);
  caller.run("ROLLBACK");
}

TEST_CASE("a fence needs an open transaction of the same kind of database") {
  Scene scene;
  Caller caller(scene.database.test_database());
  auto lock = scene.engine.lock("a");
  const auto none = thrown_by([&] { lock.fence(caller.native()); });
  CHECK(none.fault == Fault::misuse);
  CHECK(none.names("no transaction is open"));
  CHECK(thrown_by([&] { lock.fence({"oracle", caller.native().native()}); }).fault == Fault::misuse);
  caller.begin(scene.beginnings().front());
  const auto open = thrown_by([&] { lock.with_fence(caller.native(), [] {}); });
  CHECK(open.fault == Fault::misuse);
  CHECK(open.names("open already"));
  // The caller's transaction is as it was.
  caller.run("INSERT INTO app VALUES (1)");
  caller.run("COMMIT");
  CHECK(scene.stored() == 1);
  CHECK(lock.valid());
}
