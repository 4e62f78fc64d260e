// What with_fence makes of a connection on which the work, or a lost answer, has left something open.
#include "support/caller.hpp"
#include "support/database.hpp"

#include <doctest/doctest.h>

#include <exception>
#include <stdexcept>
#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("work that leaves an answer unread commits nothing, and no transaction of it stays open") {
  ServerDatabase database;
  auto engine = database->engine();
  database->admin().run("CREATE TABLE app (n bigint)");
  for (const bool throws : {false, true}) {
    INFO("throws: " << throws);
    auto lock = engine.lock("job");
    Caller caller(database.server());
    const auto thrown = thrown_by([&] {
      lock.with_fence(caller.native(), [&] {
        caller.run("INSERT INTO app VALUES (1)");
        database.server().leave_unread(caller.native().native());
        if (throws) throw Error(Fault::lost, "the work's own");
      });
    });
    if (throws) CHECK(thrown.fault == Fault::lost);
    else CHECK_MESSAGE(thrown.fault == Fault::misuse, thrown.text);
    // The row is no longer locked, though nobody has closed the connection, and no bound of silence is over.
    CHECK(lock.release() == Released::freed);
    CHECK(database->admin().number("SELECT count(*) FROM app") == 0);
    CHECK(engine.try_lock("job"));
  }
}

TEST_CASE("a connection with an answer left unread is refused before anything is begun, fenced or locked") {
  ServerDatabase database;
  auto engine = database->engine();
  auto lock = engine.lock("job");
  Caller caller(database.server());
  database.server().leave_unread(caller.native().native());
  const auto refused = [](auto call) {
    const auto thrown = thrown_by(call);
    CHECK_MESSAGE(thrown.fault == Fault::misuse, thrown.text);
  };
  refused([&] { lock.fence(caller.native()); });
  refused([&] { static_cast<void>(engine.try_lock_in(caller.native(), "other")); });
  refused([&] { lock.with_fence(caller.native(), [] { FAIL("the work was run"); }); });
  CHECK(lock.valid());
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
