// The promise of a transaction lock that is asked for while the name is not free: what is waited for, when it is busy,
// and what that costs others.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <future>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// No row of a lease, and none that keeps others out.
bool can_be_taken(Engine& engine, std::string_view name) { return engine.try_lock_for(name, 1min).has_value(); }

}  // namespace

TEST_CASE("a lease excludes transaction locks: no wait is busy at once, and a wait ends not before its time") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  auto lease = other.lock("a");
  Caller caller(database.test_database());
  for (const auto& beginning : database.test_database().beginnings()) {
    INFO(beginning.name);
    caller.begin(beginning);
    CHECK_FALSE(engine.try_lock_in(caller.native(), "a"));
    const Stopwatch time;
    CHECK_FALSE(engine.try_lock_in(caller.native(), "a", 300ms));
    // Where the transaction keeps everybody from writing, the holder could not release: then it does not wait.
    if (beginning.name != "immediate") CHECK(time.elapsed() >= 300ms);
    CHECK(time.elapsed() < 300ms + 2s * slowness());
    caller.run("ROLLBACK");
  }
  CHECK(lease.valid());
  CHECK(lease.release() == Released::freed);
}

TEST_CASE("a wait for a transaction lock ends soon after the lease is released") {
  Database database;
  auto engine = database.engine();
  Caller caller(database.test_database());
  for (const auto& beginning : database.test_database().beginnings()) {
    if (beginning.name == "immediate") continue;  // the lease could not be released meanwhile
    INFO(beginning.name);
    const auto name = fmt::format("a {}", beginning.name);
    auto lease = engine.lock(name);
    struct Freed {
      bool wanted;
      Released how;
      Stopwatch since;
    };
    auto release = std::async(std::launch::async, [&] {
      const bool wanted = eventually([&] {
        return database.admin().number("SELECT count(*) FROM resource_lock WHERE name = '" + name +
                                       "' AND wanted_until > 0") > 0;
      });
      const auto how = lease.release();
      return Freed{wanted, how, {}};
    });
    caller.begin(beginning);
    CHECK(engine.try_lock_in(caller.native(), name, 1min));
    const auto freed = release.get();
    const auto late = freed.since.elapsed();
    CHECK(freed.wanted);
    CHECK(freed.how == Released::freed);
    CHECK_MESSAGE(late < 2s * slowness(), late.count());
    caller.run("COMMIT");
  }
}

TEST_CASE("who loses the race for a name that was released waits on") {
  Database database;
  if (opener().name != "postgresql") return;  // what was tried in vain may stay locked, and nobody is waited for then
  auto engine = database.engine();
  auto others = database.engine();
  const auto beginning = database.test_database().beginnings().front();
  std::atomic<int> granted = 0;
  std::vector<std::jthread> rivals;
  for (int i = 0; i < 3; ++i)
    rivals.emplace_back([&](const std::stop_token& stop) {
      while (!stop.stop_requested())
        if (answered([&] { return others.try_lock_for("a", 1s).has_value(); })) ++granted;
    });
  Caller caller(database.test_database());
  for (int round = 0; round < 40; ++round) {
    const auto before = granted.load();
    CHECK(eventually([&] { return granted > before; }));
    caller.begin(beginning);
    CHECK(engine.try_lock_in(caller.native(), "a", 1min));
    caller.run("COMMIT");
  }
}

TEST_CASE("nothing of the lock table stays locked by a transaction that was busy") {
  Database database;
  if (opener().name != "postgresql") return;  // locks of a whole table that last as long as the transaction
  auto engine = database.engine();
  auto lease = engine.lock("leased");
  Caller rival(database.test_database());
  Caller caller(database.test_database());
  rival.begin(database.test_database().beginnings().front());
  REQUIRE(engine.try_lock_in(rival.native(), "locked"));
  for (const auto& beginning : database.test_database().beginnings())
    for (const auto& name : {"leased", "locked"})
      for (const bool by_runner : {false, true}) {
        INFO(beginning.name << ", " << name << ", runner: " << by_runner);
        caller.begin(beginning);
        const auto token =
            by_runner ? engine.try_lock_in(caller.runner(), name) : engine.try_lock_in(caller.native(), name);
        CHECK_FALSE(token);
        CHECK(caller.number("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND mode <> 'SIReadLock' AND "
                            "relation IN ('resource_lock'::regclass, 'resource_lock_holder'::regclass)") == 0);
        caller.run("ROLLBACK");
      }
  rival.run("ROLLBACK");
}

TEST_CASE("what a transaction on a file has locked itself is busy at once") {
  Database database;
  if (opener().server_database != nullptr) return;  // elsewhere it keeps nobody from writing
  auto engine = database.engine();
  Caller caller(database.test_database());
  caller.begin(database.test_database().beginnings().front());
  REQUIRE(engine.try_lock_in(caller.native(), "a", {}, LockOptions{}));
  const Stopwatch watch;
  CHECK_FALSE(engine.try_lock_in(caller.native(), "a", 1min));
  CHECK(watch.elapsed() < 2s * slowness());
  caller.run("ROLLBACK");
}

TEST_CASE("a try that waits, and one that gave up with its transaction still open, leaves the holder undisturbed") {
  Database database;
  EventLog news;
  auto engine = database.engine();
  auto holder = database.engine({.observer = news.observer()});
  Caller caller(database.test_database());
  for (const auto& beginning : database.test_database().beginnings()) {
    if (beginning.name == "immediate") continue;  // who writes there writes alone
    INFO(beginning.name);
    auto lease = holder.lock("a", renewed_often());
    caller.begin(beginning);
    caller.number("SELECT 1");
    const auto before = database.admin().expires_at("a");
    CHECK_FALSE(engine.try_lock_in(caller.native(), "a", 1s * slowness()));
    const auto meanwhile = database.admin().expires_at("a");
    CHECK(meanwhile > before + 100ms);                                                        // a few renewals
    CHECK(eventually([&] { return database.admin().expires_at("a") > meanwhile + 100ms; }));  // the transaction is open
    lease.extend(1h);
    CHECK(lease.valid());
    CHECK(lease.release() == Released::freed);
    CHECK(can_be_taken(holder, "a"));
    caller.run("ROLLBACK");
  }
  CHECK_FALSE(news.has(Event::Kind::lost));
}

TEST_CASE("what was committed after the transaction's snapshot is conflict or granted, and never merely busy") {
  Database database;
  auto engine = database.engine();
  database.admin().run("CREATE TABLE app (n bigint)");
  Caller caller(database.test_database());
  for (const auto& beginning : database.test_database().beginnings()) {
    if (!beginning.early_snapshot) continue;
    INFO(beginning.name);
    for (const bool anew : {true, false}) {
      const auto name = std::string(anew ? "new " : "old ") + beginning.name;
      if (!anew) engine.lock(name).release();
      caller.begin(beginning);
      caller.number("SELECT count(*) FROM app");
      const auto token = engine.lock(name).token();  // taken and released since
      try {
        const auto taken = engine.try_lock_in(caller.native(), name);
        REQUIRE(taken);
        CHECK(*taken > token);
      } catch (const Error& error) {
        CHECK(error.fault() == Fault::conflict);
        CHECK(std::string_view(error.what()).find("again") != std::string_view::npos);
      }
      caller.run("ROLLBACK");
      CHECK(can_be_taken(engine, name));
    }
  }
}

TEST_CASE("who waits for a name that another transaction has locked asks now and then, and no more") {
  Database database;
  if (database.test_database().beginnings().front().name == "immediate")
    return;  // a file has one writer, who waits in line
  EngineOptions rarely;
  rarely.polling.first = rarely.polling.longest = 1h;
  auto engine = database.engine(rarely);
  engine.lock("a").release();
  Caller theirs(database.test_database()), ours(database.test_database());
  theirs.run("BEGIN");
  REQUIRE(engine.try_lock_in(theirs.native(), "a"));
  int asked = 0;
  SqlRunner counted = ours.runner();
  counted.run = [&, run = counted.run](std::string_view sql) {
    ++asked;
    return run(sql);
  };
  ours.run("BEGIN");
  CHECK_FALSE(engine.try_lock_in(counted, "a", 2s));
  CHECK_MESSAGE(asked < 60, asked);
  ours.run("ROLLBACK");
  theirs.run("ROLLBACK");
}
