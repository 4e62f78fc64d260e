// What a caller's session can do to a fence: have another clock than the server, answer nothing, and be replaced by
// another one that its client library opens.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <future>
#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

struct Scene {
  ServerDatabase database{};
  Engine engine = database->engine();
  Engine other = database->engine();
  Lock lock = engine.lock("a", {.lease = 10min, .renew = false});
  long long stored = 0;
  Scene() { database->admin().run("CREATE TABLE app (n bigint)"); }

  // What has stored something without a refusal, and what was refused and has stored something.
  void check_stored(const Thrown& thrown) {
    if (!thrown.fault) ++stored;
    CHECK_MESSAGE(database->admin().number("SELECT count(*) FROM app") == stored, thrown.text);
  }
  // Nobody trusts the lease for longer than it lasts by the server's clock.
  void check_trust() {
    const auto seen = other.inspect("a");
    REQUIRE(seen);
    CHECK(seen->left >= lock.remaining());
    CHECK(seen->left <= 10min);
  }
  // Each way to prove or to take a lock in a transaction of `session`, which writes, and commits whatever was thrown.
  void try_all(Caller& caller, const TransactionRef& session, const std::function<void(const Thrown&)>& check) {
    const auto write = [&] { caller.run_anyway("INSERT INTO app VALUES (1)"); };
    const auto begin = [&] { caller.begin(database.server().beginnings().front()); };
    begin();
    write();
    auto thrown = thrown_by([&] { lock.fence(session); });
    caller.run_anyway("COMMIT");
    check(thrown);
    check_stored(thrown);
    check_trust();

    begin();
    bool granted = false;
    thrown = thrown_by([&] { granted = other.try_lock_in(session, "a").has_value(); });
    caller.run("ROLLBACK");
    CHECK_FALSE(granted);
    check(thrown);

    begin();
    thrown = thrown_by([&] { granted = other.try_lock_in(session, "free", {}, {.lease = 10min}).has_value(); });
    caller.run("COMMIT");
    CHECK(granted != thrown.fault.has_value());
    check(thrown);
    if (const auto row = other.inspect("free"); row && row->state == State::held) {
      CHECK_FALSE(thrown.fault);
      CHECK(row->left > 5min);
      CHECK(row->left <= 10min);
      free_by_force(other, "free");
    }

    thrown = thrown_by([&] { lock.with_fence(session, write); });
    check(thrown);
    check_stored(thrown);
    check_trust();
  }
};

}  // namespace

TEST_CASE("in a session that has another clock a lock is refused, or proved for as long as it says") {
  Scene scene;
  for (const auto& clock : scene.database.server().odd_clocks()) {
    INFO(clock.statements.front());
    Caller caller(scene.database.server());
    for (const auto& sql : clock.statements) caller.run(sql);
    const auto check = [&](const Thrown& thrown) {
      CHECK_MESSAGE(thrown.fault == (clock.counts ? std::optional(Fault::misuse) : std::nullopt), thrown.text);
      CHECK_MESSAGE(thrown.names("clock") == clock.counts, thrown.text);
    };
    scene.try_all(caller, caller.native(), check);
    scene.try_all(caller, caller.runner(), check);
  }
}

TEST_CASE("who waits in a session whose clock was stopped is refused, and granted nothing") {
  Scene scene;
  const auto sql = scene.database.server().stop_clock();
  if (sql.empty()) return;
  auto& admin = scene.database->admin();
  for (const bool held : {true, false}) {
    INFO("held: " << held);
    Caller caller(scene.database.server());
    caller.begin(scene.database.server().beginnings().front());
    if (!held) admin.run("LOCK TABLES resource_lock WRITE");
    caller.run(sql);
    const auto stopped = caller.number("SELECT CAST(1000 * @@timestamp AS SIGNED)");
    bool granted = false;
    auto waiting = std::async(std::launch::async, [&] {
      return thrown_by([&] {
        granted = scene.other.try_lock_in(caller.native(), held ? "a" : "free", 1min, {.lease = 10min}).has_value();
      });
    });
    const std::string wanted = "SELECT count(*) FROM resource_lock WHERE name = 'a' AND wanted_until > 0";
    const std::string now = "SELECT CAST(1000 * UNIX_TIMESTAMP(SYSDATE(6)) AS SIGNED)";
    // In a crowd it may come so late that it is refused before it waits.
    const auto refused = [&] { return waiting.wait_for(0s) == std::future_status::ready; };
    if (held) CHECK(eventually([&] { return admin.number(wanted) > 0 || refused(); }));
    CHECK(eventually([&] { return admin.number(now) > stopped + 300; }));
    if (held) scene.lock.release();
    else admin.run("UNLOCK TABLES");
    const auto thrown = waiting.get();
    CHECK_FALSE(granted);
    CHECK_MESSAGE(thrown.fault == Fault::misuse, thrown.text);
    CHECK_MESSAGE(thrown.names("clock"), thrown.text);
    caller.run("ROLLBACK");
  }
}

TEST_CASE("in a session that answers nothing a lock is refused") {
  Scene scene;
  const auto sql = scene.database.server().answer_nothing();
  if (sql.empty()) return;
  Caller caller(scene.database.server());
  caller.run(sql);
  for (const auto& session : {caller.native(), TransactionRef(caller.runner())}) {
    scene.try_all(caller, session, [](const Thrown& thrown) {
      CHECK_MESSAGE(thrown.fault == Fault::misuse, thrown.text);
      CHECK_MESSAGE(thrown.names("sql_select_limit"), thrown.text);
    });
    // And is left as it was where no transaction is open, also behind what needs no answer.
    CHECK(thrown_by([&] { scene.lock.fence(session); }).fault == Fault::misuse);
    scene.database.server().run_prepared(caller.native().native(), "INSERT INTO app VALUES (1)");
    scene.check_stored({});
    CHECK(thrown_by([&] { scene.lock.fence(session); }).fault == Fault::misuse);
    caller.run("INSERT INTO app VALUES (1)");
    scene.check_stored({});
  }
  CHECK(scene.lock.valid());
}

TEST_CASE("a connection that opens another session by itself is refused, and stores nothing") {
  Scene scene;
  const auto refused = [&](const std::function<void(Caller&)>& ask, bool begins) {
    Caller caller(scene.database.server());
    if (!scene.database.server().begin_anew(caller.native().native())) return;
    const auto session = std::to_string(caller.number("SELECT CONNECTION_ID()"));
    if (begins) caller.begin(scene.database.server().beginnings().front());
    const auto thrown = thrown_by([&] { ask(caller); });
    CHECK_MESSAGE(thrown.fault == Fault::misuse, thrown.text);
    CHECK_MESSAGE(thrown.names("MYSQL_OPT_RECONNECT"), thrown.text);
    scene.database->admin().run("KILL " + session);
    for (int i = 0; i < 3; ++i) caller.run_anyway("INSERT INTO app VALUES (1)");
    caller.run_anyway("COMMIT");
    scene.check_stored(thrown);
  };
  refused([&](Caller& caller) { scene.lock.fence(caller.native()); }, true);
  refused([&](Caller& caller) { scene.other.try_lock_in(caller.native(), "free"); }, true);
  refused([&](Caller& caller) { scene.lock.with_fence(caller.native(), [] {}); }, false);
}
