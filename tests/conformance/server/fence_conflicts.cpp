// A fence that meets a locked row, or a deadlock, is a conflict: it costs the transaction, and never the connection.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <exception>
#include <functional>
#include <future>
#include <optional>
#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

struct Scene {
  ServerDatabase database{};
  EventLog news{};
  Engine engine = database->engine({.timeouts = {.request = 1s}, .observer = news.observer()});
  Scene() { database->admin().run("CREATE TABLE app (n bigint PRIMARY KEY, v bigint)"); }
  long long stored() { return database->admin().number("SELECT count(*) FROM app"); }
};

// Gives the session a table that only it sees, and no long wait of its own.
void set_up(Caller& caller, Scene& scene) {
  caller.run("CREATE TEMPORARY TABLE mine (n int)");
  if (const auto setting = scene.database.server().wait_briefly(); !setting.empty()) caller.run(setting);
}
void check_same_session(Caller& caller) { CHECK(caller.number("SELECT count(*) FROM mine") == 0); }

}  // namespace

TEST_CASE("with_fence that meets a locked row runs again on the same connection, and stores its work once") {
  Scene scene;
  auto lock = scene.engine.lock("a", {.lease = 1h, .renew = false});
  Caller caller(scene.database.server());
  set_up(caller, scene);
  scene.database->admin().block("a");
  int runs = 0;
  auto fenced = std::async(std::launch::async, [&] {
    const auto work = [&] {
      ++runs;
      caller.run("INSERT INTO app VALUES (1, 1)");
    };
    return thrown_by([&] { lock.with_fence(caller.native(), work); });
  });
  CHECK(scene.news.comes(Event::Kind::retried));
  scene.database->admin().unblock();
  const auto thrown = fenced.get();
  CHECK_MESSAGE(!thrown.fault, thrown.text);
  CHECK(runs == 1);
  CHECK(scene.stored() == 1);
  check_same_session(caller);
  CHECK(lock.valid());
}

TEST_CASE(
    "a fence that fails by a conflict stores nothing of its transaction, and leaves the connection to the next one") {
  Scene scene;
  auto lock = scene.engine.lock("a", {.lease = 1h, .renew = false});
  for (const bool native : {true, false}) {
    for (const auto& beginning : scene.database.server().beginnings()) {
      INFO((native ? "native" : "runner") << ", " << beginning.name);
      Caller caller(scene.database.server());
      set_up(caller, scene);
      // The runner waits for a row as its session is set up to.
      caller.begin(beginning);
      caller.run("INSERT INTO app VALUES (1, 1)");
      caller.run("SAVEPOINT earlier");
      scene.database->admin().block("a");
      bool failed = false;
      try {
        native ? lock.fence(caller.native()) : lock.fence(caller.runner());
      } catch (const Error& error) {
        failed = true;
        CHECK(error.fault() == Fault::conflict);
      } catch (const std::exception&) {
        failed = true;
        CHECK_FALSE(native);
      }
      CHECK(failed);
      caller.run_anyway("ROLLBACK TO SAVEPOINT earlier");
      caller.run_anyway("INSERT INTO app VALUES (2, 2)");
      caller.run_anyway("COMMIT");
      CHECK(scene.stored() == 0);
      scene.database->admin().unblock();
      caller.run_anyway("ROLLBACK");
      check_same_session(caller);
      caller.begin(beginning);
      native ? lock.fence(caller.native()) : lock.fence(caller.runner());
      caller.run("INSERT INTO app VALUES (3, 3)");
      caller.run("COMMIT");
      CHECK(scene.stored() == 1);
      scene.database->admin().run("DELETE FROM app");
    }
  }
  CHECK(lock.valid());
}

namespace {

// Has the caller's transaction be the one that a deadlock is broken by, once: afterwards the other one has to end.
class Deadlock {
 public:
  Deadlock(Scene& scene, Caller& caller) : scene_(scene), caller_(caller), other_(scene.database.server()) {
    // Where the one that has waited for long enough looks for a cycle, it is ours that does.
    other_.run_anyway("SET deadlock_timeout = '60s'");
  }
  ~Deadlock() {
    try {
      caller_.run("ROLLBACK");
    } catch (const std::exception&) {  // a test that has failed already
    }
    try {
      end();
    } catch (const std::exception&) {  // likewise
    }
  }
  Deadlock(const Deadlock&) = delete;
  Deadlock& operator=(const Deadlock&) = delete;

  // Throws what the caller's driver throws.
  void lose(const std::function<void(const std::string&)>& run) {
    caller_.run("UPDATE app SET v = v + 1 WHERE n = 1");
    // Where the heavier transaction is spared, it is the other one.
    other_.run(scene_.database.server().begin_writing());
    for (int i = 100; i < 120; ++i) other_.run("INSERT INTO app VALUES (" + std::to_string(i) + ", 4)");
    other_.run("UPDATE app SET v = v + 1 WHERE n = 2");
    std::promise<void> asks;
    waits_ = std::async(std::launch::async, [this, &asks] {
      asks.set_value();
      other_.run("UPDATE app SET v = v + 1 WHERE n = 1");
    });
    asks.get_future().wait();
    const std::string waiting =
        opener().name == "postgresql"
            ? "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            : "SELECT count(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'UPDATE app% n "
              "= 1'";
    if (!eventually([&] { return scene_.database->admin().number(waiting) > 0; }))
      throw std::logic_error("the other one asks for nothing");
    run("UPDATE app SET v = v + 1 WHERE n = 2");
  }
  void end() {
    if (!waits_.valid()) return;
    waits_.get();
    other_.run("ROLLBACK");
  }

 private:
  Scene& scene_;
  Caller& caller_;
  Caller other_;
  std::future<void> waits_{};
};

}  // namespace

TEST_CASE(
    "a deadlock that the server breaks inside of the work can be run again, and is stored once; in a transaction of "
    "the work's own it is not run again") {
  Scene scene;
  auto alone = scene.engine.lock("a"), shared = scene.engine.lock("s", {.mode = Mode::shared});
  scene.database->admin().run("INSERT INTO app VALUES (1, 0)");
  scene.database->admin().run("INSERT INTO app VALUES (2, 0)");
  for (const std::string by : {"text", "prepared", "runner", "shared"}) {
    for (const bool its_own : {true, false}) {
      INFO(by << ", in a transaction of its own: " << its_own);
      auto& lock = by == "shared" ? shared : alone;
      scene.database->admin().run("DELETE FROM app WHERE n = 3");
      Caller caller(scene.database.server());
      set_up(caller, scene);
      Deadlock deadlock(scene, caller);
      int runs = 0;
      const auto work = [&] {
        if (++runs == 2) deadlock.end();
        caller.run("INSERT INTO app VALUES (3, 3)");
        if (its_own) {
          caller.run("COMMIT");
          caller.run(scene.database.server().begin_writing());
        }
        if (runs == 2) return;
        try {
          deadlock.lose([&](const std::string& sql) {
            if (by == "prepared") scene.database.server().run_prepared(caller.native().native(), sql);
            else caller.run(sql);
          });
        } catch (const std::exception& error) {
          // Where the row is free by now, a renewal of the lease is not taken for what was fenced.
          if (opener().name == "mysql") lock.extend(2min);
          throw Error(Fault::conflict, error.what());
        }
      };
      const auto thrown = thrown_by(
          [&] { by == "runner" ? lock.with_fence(caller.runner(), work) : lock.with_fence(caller.native(), work); });
      if (its_own) CHECK_MESSAGE(thrown.fault == Fault::misuse, thrown.text);
      else CHECK_MESSAGE(!thrown.fault, thrown.text);
      CHECK(runs == (its_own ? 1 : 2));
      CHECK(scene.database->admin().number("SELECT count(*) FROM app WHERE n = 3") == 1);
      check_same_session(caller);
    }
  }
}

TEST_CASE("a transaction that the server has undone is open no more, whatever the client library remembers of it") {
  Scene scene;
  auto lock = scene.engine.lock("a");
  scene.database->admin().run("INSERT INTO app VALUES (1, 0)");
  scene.database->admin().run("INSERT INTO app VALUES (2, 0)");
  const auto misuse = [](auto call) {
    const auto thrown = thrown_by(call);
    CHECK_MESSAGE(thrown.fault == Fault::misuse, thrown.text);
  };
  for (const bool native : {true, false}) {
    // On PostgreSQL such a transaction has failed, and a runner's driver says so itself. MySQL does not tell a runner.
    if (!native && (opener().name != "mysql" ||
                    scene.database->admin().text("SELECT VERSION()").find("MariaDB") == std::string::npos))
      continue;
    for (const bool fences : {true, false}) {
      INFO((native ? "native" : "runner") << ", fences: " << fences);
      Caller caller(scene.database.server());
      const TransactionRef transaction = native ? caller.native() : TransactionRef(caller.runner());
      set_up(caller, scene);
      Deadlock deadlock(scene, caller);
      caller.begin(scene.database.server().beginnings().front());
      CHECK_THROWS(deadlock.lose([&](const std::string& sql) { caller.run(sql); }));
      if (fences) misuse([&] { lock.fence(transaction); });
      else misuse([&] { static_cast<void>(scene.engine.try_lock_in(transaction, "other")); });
    }
  }
}

TEST_CASE("work that has made a temporary table can be run again") {
  Scene scene;
  auto lock = scene.engine.lock("a");
  for (const bool native : {true, false}) {
    INFO((native ? "native" : "runner"));
    Caller caller(scene.database.server());
    int runs = 0;
    const auto work = [&] {
      caller.run("CREATE TEMPORARY TABLE IF NOT EXISTS scratch (n int)");
      caller.run("INSERT INTO scratch VALUES (1)");
      if (++runs == 1) throw Error(Fault::conflict, "again");
    };
    const auto thrown =
        thrown_by([&] { native ? lock.with_fence(caller.native(), work) : lock.with_fence(caller.runner(), work); });
    CHECK_MESSAGE(!thrown.fault, thrown.text);
    CHECK(runs == 2);
  }
}

TEST_CASE("work that has written a table without transactions is not run again: what it wrote there is stored") {
  if (opener().name != "mysql") return;
  Scene scene;
  auto lock = scene.engine.lock("a");
  scene.database->admin().run("CREATE TABLE journal (n int) ENGINE = MyISAM");
  scene.database->admin().run("INSERT INTO app VALUES (1, 0)");
  scene.database->admin().run("INSERT INTO app VALUES (2, 0)");
  const auto written = [&] { return scene.database->admin().number("SELECT count(*) FROM journal"); };
  {
    Caller probe(scene.database.server());
    probe.run("BEGIN");
    probe.run("INSERT INTO app VALUES (3, 3)");
    try {
      probe.run("INSERT INTO journal VALUES (0)");
    } catch (const std::exception& error) {  // where a server keeps to what can be replicated, no work can do that
      CHECK_MESSAGE(std::string(error.what()).find("GTID") != std::string::npos, error.what());
      return;
    }
    probe.run("ROLLBACK");
  }
  for (const bool native : {true, false}) {
    for (const bool loses : {false, true}) {
      for (const bool writes : {true, false}) {
        INFO((native ? "native" : "runner") << ", loses a deadlock: " << loses << ", writes: " << writes);
        const auto before = written();
        Caller caller(scene.database.server());
        if (const auto setting = scene.database.server().wait_briefly(); !setting.empty()) caller.run(setting);
        Deadlock deadlock(scene, caller);
        int runs = 0;
        const auto work = [&] {
          if (++runs == 2) deadlock.end();
          if (writes) caller.run("INSERT INTO journal VALUES (1)");
          if (runs == 2) return;
          try {
            if (loses) deadlock.lose([&](const std::string& sql) { caller.run(sql); });
          } catch (const std::exception&) {}
          throw Error(Fault::conflict, "again");
        };
        const auto thrown = thrown_by(
            [&] { native ? lock.with_fence(caller.native(), work) : lock.with_fence(caller.runner(), work); });
        CHECK_MESSAGE(thrown.fault == (writes ? std::optional(Fault::misuse) : std::nullopt), thrown.text);
        CHECK(runs == (writes ? 1 : 2));
        CHECK(written() == before + (writes ? 1 : 0));
        CHECK(scene.stored() == 2);
      }
    }
  }
}

TEST_CASE("a second lock whose row is locked is a conflict of all of the work, which is run again") {
  Scene scene;
  auto first = scene.engine.lock("a", {.lease = 1h, .renew = false}),
       second = scene.engine.lock("b", {.lease = 1h, .renew = false});
  Caller caller(scene.database.server());
  set_up(caller, scene);
  for (const bool swallowed : {false, true}) {
    INFO("swallowed: " << swallowed);
    scene.database->admin().run("DELETE FROM app");
    scene.database->admin().block("b");
    int runs = 0;
    first.with_fence(caller.native(), [&] {
      if (++runs == 2) scene.database->admin().unblock();
      caller.run("INSERT INTO app VALUES (1, 1)");
      try {
        second.fence(caller.native());
      } catch (const Error& error) {
        CHECK(error.fault() == Fault::conflict);
        if (!swallowed) throw;
      }
    });
    CHECK(runs == 2);
    CHECK(scene.stored() == 1);
    check_same_session(caller);
  }
}

TEST_CASE("a fence that meets its name locked while its place is taken by somebody else stores nothing") {
  Scene scene;
  auto patient = scene.database->engine({.reentrance = Reentrance::none, .timeouts = {.request = far_longer()}});
  auto other = scene.database->engine({.reentrance = Reentrance::none});
  auto& admin = scene.database->admin();
  const LockOptions permit{.mode = Mode::permits, .limit = 2, .lease = 1h, .renew = false};
  for (const auto& beginning : scene.database.server().beginnings()) {
    for (const bool native : {true, false}) {
      INFO((native ? "native" : "runner") << ", " << beginning.name);
      const auto beside = other.lock("gpu", permit);
      auto dies = patient.lock("gpu", permit);
      Caller caller(scene.database.server());
      caller.begin(beginning);
      caller.run("INSERT INTO app VALUES (1, 1)");
      // As one that comes counts it out: with the name locked, which stays held by the other one.
      admin.block("gpu");
      admin.run("DELETE FROM resource_lock_holder WHERE owner = '" + dies.owner() + "'");
      std::atomic<bool> asked{false}, fenced{false};
      auto fence = std::async(std::launch::async, [&] {
        asked = true;
        try {
          native ? dies.fence(caller.native()) : dies.fence(caller.runner());
          fenced = true;
        } catch (const Error& error) { return std::optional(error.fault()); } catch (const std::exception&) {
        }  // a runner passes on what its driver throws
        return std::optional<Fault>();
      });
      CHECK(eventually([&] { return asked.load(); }));
      // Where the server can tell, it waits by now. Where it does not, it has to find the same.
      static_cast<void>(eventually([&] { return scene.database.server().somebody_waits(); }, 200ms));
      admin.run("COMMIT");
      const auto refused = fence.get();
      CHECK_FALSE(fenced);
      if (!beginning.early_snapshot) CHECK(refused == Fault::lost);
      caller.run_anyway("COMMIT");
      CHECK(scene.stored() == 0);
      CHECK(beside.valid());
      CHECK(dies.release() == Released::was_lost);
    }
  }
}
