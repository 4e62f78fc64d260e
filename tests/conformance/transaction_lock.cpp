// The promise of the transaction lock: held for as long as the caller's transaction, excluding leases
// and excluded by them.
#include "support/caller.hpp"
#include "support/database.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// Where the whole database is locked a try takes its time before it is busy: not too much of it.
bool is_busy(const Database& database, std::string_view name) {
  auto engine = database.engine({.timeouts = {.request = time_in_vain()}});
  return granted_nothing([&] { return engine.try_lock(name).has_value(); });
}

}  // namespace

TEST_CASE("a transaction lock lasts until the commit or the rollback, and moves the token on") {
  Database database;
  auto engine = database.engine();
  Caller caller(database.test_database());
  Token last{};
  for (const auto& beginning : database.test_database().beginnings()) {
    for (const char* end : {"COMMIT", "ROLLBACK"}) {
      INFO(beginning.name << ", " << end);
      caller.begin(beginning);
      const auto token = engine.try_lock_in(caller.native(), "a", 1min);
      REQUIRE(token);
      CHECK(*token > last);
      CHECK(is_busy(database, "a"));
      Caller other(database.test_database());
      if (database.test_database().beginnings().front().name != "immediate") {  // there only one transaction writes
        other.begin(database.test_database().beginnings().front());
        CHECK_FALSE(engine.try_lock_in(other.native(), "a"));
        other.run("ROLLBACK");
      }
      caller.run(end);
      const auto lock = engine.try_lock("a");
      REQUIRE(lock);
      if (std::string(end) == "COMMIT") CHECK(lock->token() > *token);
      last = lock->token();
    }
  }
}

TEST_CASE("a transaction that has locked a name locks it once more, with the next token, and the last one counts") {
  Database database;
  auto engine = database.engine();
  Caller caller(database.test_database());
  const auto beginnings = database.test_database().beginnings();
  for (const auto& beginning : beginnings) {
    INFO(beginning.name);
    for (const auto& name : {std::string("old"), "new " + beginning.name}) {
      caller.begin(beginning);
      const auto first = engine.try_lock_in(caller.native(), name, 1min);
      REQUIRE(first);
      const auto second = engine.try_lock_in(caller.native(), name, 1min);
      REQUIRE(second);
      CHECK(number(*second) == number(*first) + 1);
      CHECK(is_busy(database, name));
      caller.run("COMMIT");
      const auto lock = engine.try_lock(name);
      REQUIRE(lock);
      CHECK(number(lock->token()) == number(*second) + 1);
    }
    caller.begin(beginning);
    REQUIRE(engine.try_lock_in(caller.native(), "old"));
    const auto lease = engine.try_lock_in(caller.native(), "old", {}, LockOptions{.lease = 1h});
    REQUIRE(lease);
    CHECK_FALSE(engine.try_lock_in(caller.native(), "old"));
    CHECK_FALSE(engine.try_lock_in(caller.native(), "old", 50ms));
    caller.run("COMMIT");
    const auto adopted = engine.adopt("old", *lease);
    REQUIRE(adopted);
    CHECK(adopted->token() == lease->token);
    caller.begin(beginning);
    CHECK_FALSE(engine.try_lock_in(caller.native(), "old"));
    caller.run("ROLLBACK");
  }
}

TEST_CASE("the caller's connection is left as it was found: settings, savepoints, writes, also after a busy try") {
  Database database;
  auto engine = database.engine();
  auto lease = engine.lock("busy");
  database.admin().run("CREATE TABLE app (n bigint)");
  Caller caller(database.test_database());
  for (const auto& beginning : database.test_database().beginnings()) {
    INFO(beginning.name);
    database.admin().run("DELETE FROM app");
    const auto before = caller.text(database.test_database().session_state());
    caller.begin(beginning);
    const auto inside = caller.text(database.test_database().session_state());
    CHECK(engine.try_lock_in(caller.native(), "before"));
    caller.run("INSERT INTO app VALUES (1)");
    CHECK_FALSE(engine.try_lock_in(caller.native(), "busy"));
    caller.run("SAVEPOINT mine");
    caller.run("INSERT INTO app VALUES (2)");
    CHECK_FALSE(engine.try_lock_in(caller.native(), "busy", 50ms));
    CHECK(engine.try_lock_in(caller.native(), "free"));
    caller.run("ROLLBACK TO SAVEPOINT mine");
    CHECK_FALSE(engine.try_lock_in(caller.native(), "busy"));
    caller.run("RELEASE SAVEPOINT mine");
    CHECK(caller.number("SELECT count(*) FROM app") == 1);
    if (database.test_database().begin_writing() == "BEGIN IMMEDIATE")
      CHECK(caller.text(database.test_database().session_state()) == inside);
    caller.run("COMMIT");
    CHECK(caller.text(database.test_database().session_state()) == before);
    CHECK(database.admin().number("SELECT count(*) FROM app") == 1);
  }
  CHECK(lease.valid());
}

TEST_CASE("a connection without an open transaction is refused, and so is one of another database") {
  Database database;
  auto engine = database.engine();
  Caller caller(database.test_database());
  const auto none = thrown_by([&] { engine.try_lock_in(caller.native(), "a"); });
  CHECK(none.fault == Fault::misuse);
  CHECK(none.names("no transaction is open"));
  CHECK_FALSE(database.admin().exists("a"));
  const TransactionRef foreign{"oracle", caller.native().native()};
  const auto other = thrown_by([&] { engine.try_lock_in(foreign, "a"); });
  CHECK(other.fault == Fault::misuse);
  CHECK(other.names("oracle"));
  const TransactionRef nothing{caller.native().dialect(), nullptr};
  CHECK(thrown_by([&] { engine.try_lock_in(nothing, "a"); }).fault == Fault::misuse);
  caller.begin(database.test_database().beginnings().front());
  CHECK(thrown_by([&] { engine.try_lock_in(caller.native(), "a", -1s); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { engine.try_lock_in(caller.native(), ""); }).fault == Fault::misuse);
  CHECK(engine.try_lock_in(caller.native(), "a"));
  caller.run("ROLLBACK");
}

TEST_CASE("a lease asked for in a transaction begins with its commit, and never after a rollback") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  Caller caller(database.test_database());
  for (const auto& beginning : database.test_database().beginnings()) {
    INFO(beginning.name);
    LockOptions options;
    options.lease = 20s;
    options.at_least = 1h;
    options.label = "the order";
    options.metadata = "{\"order\": 42}";
    caller.begin(beginning);
    const auto gone = engine.try_lock_in(caller.native(), "a", 1min, options);
    REQUIRE(gone);
    caller.run("ROLLBACK");
    CHECK_FALSE(other.adopt("a", *gone));
    CHECK(other.try_lock("a"));

    caller.begin(beginning);
    const auto grant = engine.try_lock_in(caller.native(), "a", 1min, options);
    REQUIRE(grant);
    CHECK(is_busy(database, "a"));
    CHECK_FALSE(engine.try_lock_in(caller.native(), "a"));  // it is a lease, for this transaction too
    caller.run("COMMIT");
    CHECK_FALSE(other.try_lock("a"));
    const auto holder = other.inspect("a");
    REQUIRE(holder);
    CHECK(holder->label == "the order");
    CHECK(holder->metadata == "{\"order\": 42}");
    CHECK(holder->lease == 20s);
    const auto open_for = database.admin().reopens_at("a") - database.admin().acquired_at("a");
    CHECK(open_for >= 1h);
    CHECK(open_for <= 1h + 1min);
    auto lock = other.adopt("a", *grant);
    REQUIRE(lock);
    CHECK(lock->valid());
    CHECK(lock->token() == grant->token);
    CHECK(lock->release() == Released::freed);
    CHECK_FALSE(other.try_lock("a"));  // it stays closed for its at-least time
    database.admin().run("UPDATE resource_lock SET reopens_at = 0 WHERE name = 'a'");
  }
}

TEST_CASE("whatever settings the caller's session has, a locked row is busy and the caller's writes are kept") {
  Database database;
  database.admin().run("CREATE TABLE app (n bigint)");
  auto engine = database.engine();
  auto lease = engine.lock("lease \xC3\xA4\\'\"");
  auto fenced = engine.lock("fenced \xC3\xA4\\'\"");
  const auto beginning = database.test_database().beginnings().front();
  Caller caller(database.test_database());
  for (const auto& setting : database.test_database().odd_session()) caller.run(setting);
  caller.begin(beginning);
  caller.run("INSERT INTO app VALUES (1)");
  CHECK_FALSE(engine.try_lock_in(caller.native(), lease.name(), 50ms));
  CHECK(engine.try_lock_in(caller.native(), "free \xC3\xA4\\'\""));
  fenced.fence(caller.native());
  caller.run("INSERT INTO app VALUES (2)");
  caller.run("COMMIT");
  CHECK(database.admin().number("SELECT count(*) FROM app") == 2);
  CHECK(database.admin().exists("free \xC3\xA4\\'\""));
}

TEST_CASE("a runner of the caller's own does what a native connection does") {
  Database database;
  auto engine = database.engine();
  Caller caller(database.test_database());
  caller.begin(database.test_database().beginnings().front());
  const auto token = engine.try_lock_in(caller.runner(), "it's 100 % \\ \"ours\"", 1min);
  REQUIRE(token);
  CHECK(is_busy(database, "it's 100 % \\ \"ours\""));
  caller.run("COMMIT");
  const auto lock = engine.try_lock("it's 100 % \\ \"ours\"");
  REQUIRE(lock);
  CHECK(lock->token() > *token);

  caller.begin(database.test_database().beginnings().front());
  SqlRunner broken = caller.runner();
  broken.run = [](std::string_view) -> std::vector<std::optional<std::string>> { throw std::runtime_error("mine"); };
  CHECK_THROWS_WITH_AS(engine.try_lock_in(broken, "b"), "mine", std::runtime_error);
  caller.run("ROLLBACK");
  broken.run = nullptr;
  CHECK(thrown_by([&] { engine.try_lock_in(broken, "b"); }).fault == Fault::misuse);
}

TEST_CASE("a killed process ends its transaction and its transaction lock, and nothing it wrote is kept") {
  Database database;
  database.admin().run("CREATE TABLE app (n bigint)");
  Copy copy([&](const Copy::Say& say) {
    auto engine = database.engine();
    Caller caller(database.test_database());
    caller.begin(database.test_database().beginnings().front());
    const auto token = engine.try_lock_in(caller.native(), "a");
    caller.run("INSERT INTO app VALUES (1)");
    say(token ? "locked" : "busy");
    for (;;) ::pause();
  });
  REQUIRE(copy.line() == "locked");
  auto engine = database.engine();
  CHECK(is_busy(database, "a"));
  copy.signal(SIGKILL);
  CHECK(copy.wait() == killed_by(SIGKILL));
  CHECK(engine.try_lock_for("a", 2min));
  CHECK(database.admin().number("SELECT count(*) FROM app") == 0);
}

TEST_CASE("leases and transaction locks of several processes, some of them killed, keep an unguarded number exact") {
  Database database;
  database.admin().run("CREATE TABLE counter (n bigint NOT NULL, done bigint NOT NULL)");
  database.admin().run("INSERT INTO counter VALUES (0, 0)");
  // Under the lock, a process reads the number in one step and writes it in another: nothing but the lock guards it.
  const auto work = [&](unsigned seed, int rounds) {
    return [&database, seed, rounds](const Copy::Say& say) {
      auto engine = database.engine({.lease = 10min});
      Caller caller(database.test_database());
      const auto beginning = database.test_database().beginnings().front();
      unsigned random = seed;
      for (int round = 0; round < rounds; ++round) {
        random = random * 1103515245U + 12345U;
        if ((random >> 16) % 2 == 0) {
          auto lock = engine.lock("counter");
          const auto n = caller.number("SELECT n FROM counter");
          caller.run("UPDATE counter SET n = " + std::to_string(n + 1) + ", done = done + 1");
        } else {
          for (bool done = false; !done;) {
            caller.begin(beginning);
            if (engine.try_lock_in(caller.native(), "counter", 1min)) {
              const auto n = caller.number("SELECT n FROM counter");
              caller.run("UPDATE counter SET n = " + std::to_string(n + 1) + ", done = done + 1");
              done = true;
            }
            caller.run(done ? "COMMIT" : "ROLLBACK");
          }
        }
        say("round");
      }
    };
  };
  constexpr int rounds = 20;
  Copy first(work(1, rounds)), second(work(2, rounds)), third(work(3, rounds));
  {
    // Dies in a transaction, with the lock: nobody waits for longer than it takes the server to notice.
    Copy killed([&](const Copy::Say& say) {
      auto engine = database.engine();
      Caller caller(database.test_database());
      for (;;) {
        caller.begin(database.test_database().beginnings().front());
        if (engine.try_lock_in(caller.native(), "counter", 1min)) break;
        caller.run("ROLLBACK");
      }
      caller.run("UPDATE counter SET n = 1000000");
      say("inside");
      for (;;) ::pause();
    });
    REQUIRE(killed.line() == "inside");
    killed.signal(SIGKILL);
    CHECK(killed.wait() == killed_by(SIGKILL));
  }
  for (auto* copy : {&first, &second, &third}) CHECK(copy->wait() == 0);
  CHECK(database.admin().number("SELECT n FROM counter") == 3 * rounds);
  CHECK(database.admin().number("SELECT done FROM counter") == 3 * rounds);
}
