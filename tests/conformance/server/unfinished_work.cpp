// What with_fence makes of a connection on which the work, or a lost answer, has left something open.
#include "support/caller.hpp"
#include "support/database.hpp"

#include <doctest/doctest.h>

#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("work that leaves an answer unread commits nothing, and no transaction of it stays open") {
  ServerDatabase database;
  auto engine = database->engine();
  database->admin().run("CREATE TABLE app (n bigint)");
  for (int way = 0; way < database.server().ways_to_leave_unread(); ++way)
    for (const std::optional<Fault> thrown_there : {std::optional<Fault>(), {Fault::lost}, {Fault::conflict}}) {
      INFO("way " << way << ", throws: " << (thrown_there ? to_string(*thrown_there) : "nothing"));
      auto lock = engine.lock("job");
      Caller caller(database.server());
      int runs = 0;
      const auto thrown = thrown_by([&] {
        lock.with_fence(caller.native(), [&] {
          if (++runs > 1) throw Error(Fault::lost, "the work's own");
          caller.run("INSERT INTO app VALUES (1)");
          database.server().leave_unread(caller.native().native(), way);
          if (thrown_there) throw Error(*thrown_there, "the work's own");
        });
      });
      CHECK(thrown.fault);
      if (thrown_there == Fault::lost) CHECK(thrown.fault == Fault::lost);
      if (!thrown_there) CHECK_MESSAGE((thrown.fault == Fault::misuse && runs == 1), thrown.text);
      if (thrown_there == Fault::conflict)
        CHECK_MESSAGE(thrown.fault == (runs == 1 ? Fault::misuse : Fault::lost), thrown.text);
      // The row is no longer locked, though nobody has closed the connection, and no bound of silence is over.
      CHECK(lock.release() == Released::freed);
      CHECK(database->admin().number("SELECT count(*) FROM app") == 0);
      CHECK(engine.try_lock("job"));
      caller.run_anyway("COMMIT");
      CHECK(database->admin().number("SELECT count(*) FROM app") == 0);
    }
}

TEST_CASE("a connection with an answer left unread is refused before anything is begun, fenced or locked") {
  ServerDatabase database;
  auto engine = database->engine();
  auto lock = engine.lock("job");
  database->admin().run("CREATE TABLE app (n bigint)");
  const auto refused = [](auto call) {
    const auto thrown = thrown_by(call);
    CHECK_MESSAGE((thrown.fault == Fault::misuse || thrown.fault == Fault::unavailable), thrown.text);
  };
  for (int way = 0; way < database.server().ways_to_leave_unread(); ++way) {
    INFO("way " << way);
    Caller caller(database.server());
    database.server().leave_unread(caller.native().native(), way);
    refused([&] { lock.fence(caller.native()); });
    refused([&] { static_cast<void>(engine.try_lock_in(caller.native(), "other")); });
    refused([&] { lock.with_fence(caller.native(), [] { FAIL("the work was run"); }); });
  }
  CHECK(lock.valid());
}

TEST_CASE("a prepared statement that is closed as the last thing is in nobody's way") {
  ServerDatabase database;
  auto engine = database->engine();
  database->admin().run("CREATE TABLE app (n bigint)");
  auto lock = engine.lock("job");
  Caller caller(database.server());
  const auto insert = [&] { database.server().run_prepared(caller.native().native(), "INSERT INTO app VALUES (1)"); };
  lock.with_fence(caller.native(), insert);
  caller.begin(database.server().beginnings().front());
  insert();
  lock.fence(caller.native());
  insert();
  CHECK(engine.try_lock_in(caller.native(), "other", 1min));
  caller.run("COMMIT");
  CHECK(database->admin().number("SELECT count(*) FROM app") == 3);
}

TEST_CASE("a runner that takes no more statements leaves no transaction behind: the server ends its session") {
  ServerDatabase database;
  auto engine = database->engine();
  database->admin().run("CREATE TABLE app (n bigint)");
  for (const bool throws : {false, true}) {
    INFO("throws: " << throws);
    auto lock = engine.lock("job");
    Caller caller(database.server());
    bool takes = true;
    SqlRunner cursor = caller.runner();
    cursor.run = [&, run = cursor.run](std::string_view sql) {
      if (!takes) throw std::runtime_error("a cursor is open");
      return run(sql);
    };
    CHECK_THROWS(lock.with_fence(cursor, [&] {
      caller.run("INSERT INTO app VALUES (1)");
      takes = false;
      if (throws) throw std::runtime_error("the work's own");
    }));
    CHECK(lock.release() == Released::freed);
    caller.run_anyway("COMMIT");
    CHECK(database->admin().number("SELECT count(*) FROM app") == 0);
  }
}

TEST_CASE("a roll-back that is cancelled is sent again") {
  ServerDatabase database;
  auto engine = database->engine();
  database->admin().run("CREATE TABLE app (n bigint)");
  for (const bool arrives : {false, true}) {
    INFO("it was carried out: " << arrives);
    auto lock = engine.lock("job");
    Caller caller(database.server());
    SqlRunner cancelled = caller.runner();
    int ends = 0;
    cancelled.run = [&, run = cancelled.run](std::string_view sql) {
      const bool first = sql.find("ROLLBACK") == 0 && sql.find("SAVEPOINT") == std::string_view::npos && ++ends == 1;
      if (first && !arrives) throw std::runtime_error("cancelled");
      auto row = run(sql);
      if (first) throw std::runtime_error("the answer was lost");
      return row;
    };
    CHECK_THROWS_WITH_AS(lock.with_fence(cancelled,
                                         [&] {
                                           caller.run("INSERT INTO app VALUES (1)");
                                           throw std::runtime_error("the work's own");
                                         }),
                         "the work's own", std::runtime_error);
    CHECK(database->admin().number("SELECT count(*) FROM app") == 0);
    caller.run("INSERT INTO app VALUES (2)");  // in no transaction
    CHECK(database->admin().number("SELECT count(*) FROM app") == 1);
    database->admin().run("DELETE FROM app");
    CHECK(lock.release() == Released::freed);
  }
}

TEST_CASE("a transaction that a statement has begun before it failed is neither committed nor taken for none") {
  ServerDatabase database;
  const auto fails = database.server().begin_in_what_fails();
  if (fails.empty()) return;
  auto engine = database->engine();
  database->admin().run("CREATE TABLE app (n bigint)");
  database->admin().run(fails.front());
  auto lock = engine.lock("job");
  for (const bool native : {true, false}) {
    INFO("native: " << native);
    Caller caller(database.server());
    const auto transaction = native ? caller.native() : TransactionRef(caller.runner());
    const auto misuse = [&](const std::function<void()>& work) {
      const auto thrown = thrown_by([&] { lock.with_fence(transaction, work); });
      CHECK_MESSAGE(thrown.fault == Fault::misuse, thrown.text);
      CHECK(database->admin().number("SELECT count(*) FROM app WHERE n = 9") == 0);
    };
    misuse([&] {
      caller.run("INSERT INTO app VALUES (1)");
      caller.run("COMMIT");
      caller.run_anyway(fails.back());
    });
    CHECK(database->admin().number("SELECT count(*) FROM app") == 1);
    caller.run_anyway(fails.back());
    misuse([] { FAIL("the work was run"); });
    CHECK(caller.number("SELECT count(*) FROM app WHERE n = 9") == 1);  // it is still open
    caller.run("ROLLBACK");
    database->admin().run("DELETE FROM app");
  }
}

TEST_CASE("with_fence leaves no transaction open, and the session there, whatever a session makes of an end") {
  ServerDatabase database;
  auto engine = database->engine();
  database->admin().run("CREATE TABLE app (n bigint)");
  auto lock = engine.lock("job");
  for (const auto& setting : database.server().odd_ends()) {
    INFO(setting);
    Caller caller(database.server());
    caller.run(setting);
    int runs = 0;
    lock.with_fence(caller.native(), [&] {
      caller.run("INSERT INTO app VALUES (1)");
      if (++runs == 1) throw Error(Fault::conflict, "once more");
    });
    CHECK(runs == 2);
    CHECK(database->admin().number("SELECT count(*) FROM app") == 1);
    caller.run("INSERT INTO app VALUES (2)");
    CHECK(database->admin().number("SELECT count(*) FROM app") == 2);
    database->admin().run("DELETE FROM app");
  }
}

TEST_CASE("a transaction whose beginning lost its answer is not left open") {
  ServerDatabase database;
  auto engine = database->engine();
  database->admin().run("CREATE TABLE app (n bigint)");
  auto lock = engine.lock("job");
  Caller caller(database.server());
  SqlRunner loses = caller.runner();
  int begun = 0;
  loses.run = [&, run = loses.run](std::string_view sql) {
    auto answer = run(sql);
    const bool begins = sql.find("BEGIN") == 0 || sql.find("START") == 0;
    if (begins && ++begun == 1) throw std::runtime_error("the answer was lost");
    return answer;
  };
  CHECK_THROWS_WITH_AS(lock.with_fence(loses, [] { FAIL("the work was run"); }), "the answer was lost",
                       std::runtime_error);
  CHECK(begun == 1);
  caller.run("INSERT INTO app VALUES (1)");
  CHECK(database->admin().number("SELECT count(*) FROM app") == 1);
  lock.with_fence(loses, [&] { caller.run("INSERT INTO app VALUES (2)"); });
  CHECK(database->admin().number("SELECT count(*) FROM app") == 2);
}
