// A connection to another database than the lock table's is misuse, with both named, and nothing is done there.
#include "support/caller.hpp"
#include "support/database.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// What a URL calls the database: a file by its whole path.
std::string database_of(const std::string& url) {
  const auto whole = url.substr(0, url.find('?'));
  return whole.substr(whole.find("://") == std::string::npos ? whole.find(':') + 1 : whole.rfind('/') + 1);
}

std::string identity(Admin& admin) { return admin.text("SELECT meta FROM resource_lock WHERE name = ''"); }

// A lock that was never moved: its row is as it was granted.
struct Their {
  explicit Their(const TestDatabase& there)
      : engine(there.url(), {.timeouts = {.release = far_longer()}}),
        lock(engine.lock("a", {.lease = 1h, .renew = false})) {}
  Engine engine;
  Lock lock;
};

// A lock table in `there` is somebody else's, with a lock of the same name; or there is none.
void check_that_it_is_told(Database& database, const TestDatabase& there, bool with_table) {
  auto engine = database.engine();
  auto lock = engine.lock("a");
  const auto own = database.admin().row("a");
  std::optional<Their> theirs;
  std::string row, their_identity;
  if (with_table) {
    Engine::install_schema(there.url());
    theirs.emplace(there);
    Admin admin(there);
    row = admin.row("a");
    their_identity = identity(admin);
  }
  const auto our_identity = identity(database.admin()), their_database = database_of(there.url());
  const auto told = [&](const Thrown& thrown) {
    CHECK(thrown.fault == Fault::misuse);
    CHECK_MESSAGE(thrown.names("another database"), thrown.text);
    CHECK_MESSAGE(thrown.names("resource_lock of "), thrown.text);
    CHECK_MESSAGE(thrown.names(our_identity), thrown.text);
    // Theirs, before it goes on to ours: by its identity where its table could be read, else by its name.
    const Thrown theirs_named{thrown.fault, thrown.text.substr(0, thrown.text.find("; the lock table is "))};
    CHECK_FALSE(theirs_named.names(our_identity));
    CHECK_MESSAGE(((with_table && theirs_named.names(their_identity)) || theirs_named.names(their_database)),
                  thrown.text);
  };
  for (const bool native : {true, false}) {
    INFO((native ? "native" : "runner") << ", with a table: " << with_table);
    Caller caller(there);
    for (const auto& beginning : there.beginnings()) {
      INFO(beginning.name);
      caller.begin(beginning);
      told(thrown_by([&] { native ? lock.fence(caller.native()) : lock.fence(caller.runner()); }));
      caller.run("ROLLBACK");
      caller.begin(beginning);
      told(thrown_by(
          [&] { native ? engine.try_lock_in(caller.native(), "b") : engine.try_lock_in(caller.runner(), "b"); }));
      caller.run("ROLLBACK");
      CHECK(caller.number("SELECT 1") == 1);
    }
    // What is held here is busy at the least.
    caller.begin(there.beginnings().front());
    bool taken = false;
    const auto busy = thrown_by([&] {
      taken =
          (native ? engine.try_lock_in(caller.native(), "a") : engine.try_lock_in(caller.runner(), "a")).has_value();
    });
    CHECK_FALSE(taken);
    if (native) told(busy);
    caller.run("ROLLBACK");
    bool ran = false;
    const auto work = [&] { ran = true; };
    told(thrown_by([&] { native ? lock.with_fence(caller.native(), work) : lock.with_fence(caller.runner(), work); }));
    CHECK_FALSE(ran);
    CHECK(caller.number("SELECT 1") == 1);
  }
  if (with_table) {
    Admin admin(there);
    CHECK(admin.row("a") == row);
    CHECK_FALSE(admin.exists("b"));
    CHECK(identity(admin) == their_identity);
    CHECK(theirs->lock.valid());
    CHECK(theirs->lock.release() == Released::freed);
  }
  CHECK(lock.valid());
  CHECK(lock.owner() == database.admin().owner("a"));
  Caller right(database.test_database());
  right.begin(database.test_database().beginnings().front());
  lock.fence(right.native());
  CHECK(engine.try_lock_in(right.runner(), "b"));
  right.run("COMMIT");
}

}  // namespace

TEST_CASE("a connection to another database beside this one is misuse, and both are named") {
  for (const bool with_table : {true, false}) {
    Database database;
    const auto beside = opener().test_database();
    if (!beside->reaches_others()) check_that_it_is_told(database, *beside, with_table);
  }
}

TEST_CASE("a connection to another server is misuse, and both are named") {
  if (opener().private_server == nullptr) return;
  const auto server = opener().private_server();
  for (const bool with_table : {false, true}) {
    Database database;
    check_that_it_is_told(database, *server->test_database(), with_table);
  }
}

TEST_CASE("a connection that reaches the lock table by its full name is in the right database") {
  Database database;
  const auto beside = opener().test_database();
  if (!beside->reaches_others()) return;
  auto engine = database.engine();
  auto lock = engine.lock("a");
  for (const bool native : {true, false}) {
    INFO((native ? "native" : "runner"));
    Caller caller(*beside);
    caller.begin(beside->beginnings().front());
    native ? lock.fence(caller.native()) : lock.fence(caller.runner());
    const auto token = native ? engine.try_lock_in(caller.native(), "b") : engine.try_lock_in(caller.runner(), "b");
    REQUIRE(token);
    CHECK_FALSE(engine.try_lock("b"));
    caller.run("COMMIT");
    CHECK(database.admin().token("b") == *token);
  }
}

TEST_CASE("two lock tables in one database are told apart by their names, and each fences its own") {
  Database database;
  schema::Options other;
  other.table = "other_lock";
  REQUIRE(schema::up(database.url(), other).state == schema::SchemaState::good);
  EngineOptions options;
  options.table = "other_lock";
  {
    auto one = database.engine(), two = database.engine(options);
    auto first = one.lock("a"), second = two.lock("a");
    Caller caller(database.test_database());
    caller.begin(database.test_database().beginnings().front());
    first.fence(caller.native());
    second.fence(caller.native());
    CHECK(two.try_lock_in(caller.native(), "b"));
    caller.run("COMMIT");
    CHECK_FALSE(database.admin().exists("b"));
  }
  REQUIRE(schema::down(database.url(), 0, other).state == schema::SchemaState::good);
}

TEST_CASE("an installation whose floor row was made anew under a running engine is still its own") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.lock("a");
  database.admin().run("CREATE TABLE app (n bigint)");
  for (const bool native : {true, false}) {
    INFO((native ? "native" : "runner"));
    database.admin().run(std::string("UPDATE resource_lock SET meta = '") + std::string(32, native ? '1' : '2') +
                         "' WHERE name = ''");
    Caller caller(database.test_database());
    int runs = 0;
    const auto work = [&] {
      ++runs;
      caller.run("INSERT INTO app VALUES (1)");
    };
    native ? lock.with_fence(caller.native(), work) : lock.with_fence(caller.runner(), work);
    CHECK(runs == 1);
    database.admin().run(std::string("UPDATE resource_lock SET meta = '") + std::string(32, native ? '3' : '4') +
                         "' WHERE name = ''");
    caller.begin(database.test_database().beginnings().front());
    CHECK((native ? engine.try_lock_in(caller.native(), "b", 5s) : engine.try_lock_in(caller.runner(), "b", 5s)));
    caller.run("COMMIT");
  }
  CHECK(database.admin().number("SELECT count(*) FROM app") == 2);
}

TEST_CASE("after a restart of the server the connection is in the right database as before") {
  if (opener().private_server == nullptr) return;
  const auto server = opener().private_server();
  Database database(server->test_database());
  auto engine = database.engine();
  { auto lock = engine.lock("a"); }
  server->stop();
  server->start();
  auto lock = engine.try_lock_for("a", 30s);
  REQUIRE(lock);
  Caller caller(database.test_database());
  caller.begin(database.test_database().beginnings().front());
  lock->fence(caller.native());
  CHECK(engine.try_lock_in(caller.native(), "b"));
  // And no other transaction waits for what this one has looked at.
  Caller second(database.test_database());
  second.run(database.test_database().begin_writing());
  second.run("UPDATE resource_lock SET label = 'a reaper' WHERE name = ''");
  second.run("ROLLBACK");
  caller.run("COMMIT");
}
