// After a refused fence nothing of its transaction is stored, whatever its caller does and however it handed it over.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

struct Scene {
  Database database{};
  Engine engine = database.engine();
  Scene() { database.admin().run("CREATE TABLE app (n bigint)"); }
  long long stored() { return database.admin().number("SELECT count(*) FROM app"); }
};

// Each is tried after: BEGIN, INSERT, SAVEPOINT a, INSERT, SAVEPOINT b, INSERT, and a fence that was refused.
const std::vector<std::vector<std::string>> endings{
    {"COMMIT"},
    {"INSERT INTO app VALUES (9)", "COMMIT"},
    {"ROLLBACK TO SAVEPOINT a", "COMMIT"},
    {"ROLLBACK TO SAVEPOINT b", "COMMIT"},
    {"ROLLBACK TO SAVEPOINT b", "INSERT INTO app VALUES (9)", "RELEASE SAVEPOINT a", "COMMIT"},
    {"ROLLBACK TO SAVEPOINT b", "ROLLBACK TO SAVEPOINT a", "INSERT INTO app VALUES (9)", "COMMIT"},
    {"RELEASE SAVEPOINT b", "RELEASE SAVEPOINT a", "COMMIT"},
    {"ROLLBACK TO SAVEPOINT a", "SAVEPOINT c", "INSERT INTO app VALUES (9)", "RELEASE SAVEPOINT c", "COMMIT"},
    {"COMMIT", "COMMIT"},
};

std::string in_words(const std::vector<std::string>& ending) {
  std::string text;
  for (const auto& sql : ending) text += sql + "; ";
  return text;
}

}  // namespace

TEST_CASE("after a refused fence nothing of its transaction is stored, whatever savepoints it goes back to") {
  Scene scene;
  auto other = scene.database.engine({.timeouts = {.request = time_in_vain()}});
  for (const bool native : {true, false}) {
    for (const auto& beginning : scene.database.test_database().beginnings()) {
      for (const auto& ending : endings) {
        INFO((native ? "native" : "runner") << ", " << beginning.name << ": " << in_words(ending));
        auto lock = scene.engine.lock("a");
        CHECK(other.force_release("a", lock.token()));
        auto next = other.try_lock("a");
        REQUIRE(next);
        {
          Caller caller(scene.database.test_database());
          caller.begin(beginning);
          caller.run("INSERT INTO app VALUES (1)");
          caller.run("SAVEPOINT a");
          caller.run("INSERT INTO app VALUES (2)");
          caller.run("SAVEPOINT b");
          caller.run("INSERT INTO app VALUES (3)");
          const auto refused = thrown_by([&] { native ? lock.fence(caller.native()) : lock.fence(caller.runner()); });
          CHECK(refused.fault == Fault::lost);
          CHECK(refused.names("roll the transaction back"));
          for (const auto& sql : ending) caller.run_anyway(sql);
        }
        CHECK(scene.stored() == 0);
        CHECK(next->valid());
        CHECK(next->release() == Released::freed);
      }
    }
  }
}

TEST_CASE("a transaction that began with a savepoint cannot be released after a refused fence either") {
  Scene scene;
  for (const bool native : {true, false}) {
    INFO((native ? "native" : "runner"));
    auto lock = scene.engine.lock("a");
    CHECK(scene.engine.force_release("a", lock.token()));
    {
      Caller caller(scene.database.test_database());
      // Where a savepoint begins no transaction, this one has one of its own.
      if (scene.database.test_database().begin_writing() != "BEGIN IMMEDIATE") caller.run("BEGIN");
      caller.run("SAVEPOINT outer_one");
      caller.run("INSERT INTO app VALUES (1)");
      CHECK(thrown_by([&] { native ? lock.fence(caller.native()) : lock.fence(caller.runner()); }).fault ==
            Fault::lost);
      caller.run_anyway("ROLLBACK TO SAVEPOINT outer_one");
      caller.run_anyway("INSERT INTO app VALUES (2)");
      caller.run_anyway("RELEASE SAVEPOINT outer_one");
      caller.run_anyway("COMMIT");
    }
    CHECK(scene.stored() == 0);
  }
}

TEST_CASE(
    "a caller who rolls back a refused transaction, and loses its connection at most, goes on with the next one") {
  Scene scene;
  for (const auto& beginning : scene.database.test_database().beginnings()) {
    INFO(beginning.name);
    auto caller = std::make_unique<Caller>(scene.database.test_database());
    auto lost = scene.engine.lock("a");
    CHECK(scene.engine.force_release("a", lost.token()));
    caller->begin(beginning);
    caller->run("INSERT INTO app VALUES (1)");
    CHECK(thrown_by([&] { lost.fence(caller->native()); }).fault == Fault::lost);
    try {
      caller->run("ROLLBACK");
      caller->number("SELECT 1");
    } catch (const std::exception&) { caller = std::make_unique<Caller>(scene.database.test_database()); }
    auto lock = scene.engine.lock("a");
    const auto before = scene.stored();
    for (int i = 0; i < 2; ++i) {
      caller->begin(beginning);
      lock.fence(caller->native());
      caller->run("INSERT INTO app VALUES (1)");
      caller->run("COMMIT");
    }
    CHECK(scene.stored() == before + 2);
  }
}

TEST_CASE("with doom = false a refused fence only fails, and what becomes of the transaction is the caller's") {
  Scene scene;
  for (const bool native : {true, false}) {
    INFO((native ? "native" : "runner"));
    auto lock = scene.engine.lock("a");
    CHECK(scene.engine.force_release("a", lock.token()));
    Caller caller(scene.database.test_database());
    caller.begin(scene.database.test_database().beginnings().front());
    caller.run("INSERT INTO app VALUES (1)");
    caller.run("SAVEPOINT a");
    const FenceOptions undoomed{.doom = false};
    CHECK(thrown_by([&] {
            native ? lock.fence(caller.native(), undoomed) : lock.fence(caller.runner(), undoomed);
          }).fault == Fault::lost);
    const auto before = scene.stored();
    caller.run("ROLLBACK TO SAVEPOINT a");
    caller.run("COMMIT");
    CHECK(scene.stored() == before + 1);
  }
}

TEST_CASE("without an open transaction a fence and a transaction lock are misuse, whatever was handed over") {
  Scene scene;
  auto lock = scene.engine.lock("a", {.lease = 1h});
  const auto row = scene.database.admin().row("a");
  Caller caller(scene.database.test_database());
  for (const bool native : {true, false}) {
    INFO((native ? "native" : "runner"));
    const auto fenced = thrown_by([&] { native ? lock.fence(caller.native()) : lock.fence(caller.runner()); });
    CHECK(fenced.fault == Fault::misuse);
    CHECK_MESSAGE(fenced.names("no transaction is open"), fenced.text);
    const auto taken = thrown_by([&] {
      native ? scene.engine.try_lock_in(caller.native(), "b") : scene.engine.try_lock_in(caller.runner(), "b");
    });
    CHECK(taken.fault == Fault::misuse);
    CHECK_MESSAGE(taken.names("no transaction is open"), taken.text);
    CHECK_FALSE(scene.database.admin().exists("b"));
    CHECK(scene.database.admin().row("a") == row);
    // The connection is as it was: not in a transaction, and it takes writes.
    const auto before = scene.stored();
    caller.run("INSERT INTO app VALUES (1)");
    CHECK(scene.stored() == before + 1);
  }
  CHECK(lock.valid());
}

TEST_CASE(
    "without an open transaction nothing is fenced or locked, whichever statement of the runner fails on the way") {
  Scene scene;
  auto lock = scene.engine.lock("a");
  Caller caller(scene.database.test_database());
  for (const bool fences : {true, false}) {
    bool failed = true;
    for (int fails = 1; failed; ++fails) {
      INFO("fences: " << fences << ", fails: " << fails);
      failed = false;
      int sent = 0;
      const SqlRunner runner{std::string(opener().name), [&](std::string_view sql) {
                               if (++sent != fails) return caller.runner().run(sql);
                               failed = true;
                               throw std::runtime_error("interrupted");
                             }};
      if (fences) CHECK_THROWS(lock.fence(runner));
      else CHECK_THROWS(scene.engine.try_lock_in(runner, "b"));
      REQUIRE(fails < 100);
    }
  }
  CHECK_FALSE(scene.database.admin().exists("b"));
}
