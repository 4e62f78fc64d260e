// What with_fence makes of work that ends its transaction by itself: nothing that was committed is run again, and
// what it has left open is not committed.
#include "support/caller.hpp"
#include "support/database.hpp"

#include <doctest/doctest.h>

#include <exception>
#include <stdexcept>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

struct Scene {
  Database database{};
  Engine engine = database.engine();
  Lock lock = engine.lock("a");
  Caller caller{database.test_database()};
  Scene() { database.admin().run("CREATE TABLE app (n bigint)"); }

  bool file() { return database.test_database().begin_writing() == "BEGIN IMMEDIATE"; }
  long long stored() { return database.admin().number("SELECT count(*) FROM app"); }
  void with_fence(bool native, const std::function<void()>& work, const FenceOptions& options = {}) {
    if (native) lock.with_fence(caller.native(), work, options);
    else lock.with_fence(caller.runner(), work, options);
  }
  int made = 0;
};

struct Ending {
  std::string name;
  std::vector<std::string> statements;  // after an INSERT of 1; 2 is what must not be stored
  long long stored;
};

std::vector<Ending> endings(Scene& scene) {
  const auto begin = scene.database.test_database().begin_writing();
  const std::string more = "INSERT INTO app VALUES (2)";
  std::vector<Ending> all{
      {"COMMIT", {"COMMIT"}, 1},
      {"COMMIT, and another transaction", {"COMMIT", begin, more}, 1},
      {"COMMIT, and another one that fails", {"COMMIT", begin, more, "SELECT 1 FROM nowhere"}, 1},
      {"ROLLBACK", {"ROLLBACK"}, 0},
      {"ROLLBACK, and another transaction", {"ROLLBACK", begin, more}, 0},
      {"a savepoint of before", {"SAVEPOINT x", more, "ROLLBACK TO SAVEPOINT x", "COMMIT"}, 1},
  };
  if (!scene.file()) {
    all.push_back({"COMMIT AND CHAIN", {"COMMIT AND CHAIN", more}, 1});
    all.push_back({"ROLLBACK AND CHAIN", {"ROLLBACK AND CHAIN", more}, 0});
  }
  return all;
}

}  // namespace

TEST_CASE("work that ends its transaction is not run again, and nothing of another one is committed") {
  Scene scene;
  for (const bool native : {true, false}) {
    for (const bool asks_for_more : {false, true}) {
      for (const auto& ending : endings(scene)) {
        INFO((native ? "native" : "runner") << ", " << ending.name << ", asks for more: " << asks_for_more);
        scene.database.admin().run("DELETE FROM app");
        int runs = 0;
        const auto thrown = thrown_by([&] {
          scene.with_fence(native, [&] {
            ++runs;
            scene.caller.run("INSERT INTO app VALUES (1)");
            for (const auto& sql : ending.statements) try {
                scene.caller.run(sql);
              } catch (const std::exception&) {  // one of them is meant to fail
              }
            if (asks_for_more) throw Error(Fault::conflict, "again");
          });
        });
        CHECK(thrown.fault == Fault::misuse);
        CHECK_MESSAGE((thrown.names("ended") || thrown.names("failed")), thrown.text);
        CHECK(runs == 1);
        CHECK(scene.stored() == ending.stored);
        CHECK(scene.database.admin().number("SELECT count(*) FROM app WHERE n = 2") == 0);
        // The connection is left outside of any transaction, and can be used.
        scene.with_fence(native, [&] { scene.caller.run("DELETE FROM app"); });
        CHECK(scene.stored() == 0);
      }
    }
  }
  CHECK(scene.lock.valid());
}

TEST_CASE("work with a statement that commits by itself is run once, whatever it asks for") {
  Scene scene;
  for (const bool native : {true, false}) {
    for (const bool asks_for_more : {false, true}) {
      INFO((native ? "native" : "runner") << ", asks for more: " << asks_for_more);
      scene.database.admin().run("DELETE FROM app");
      int runs = 0;
      const auto thrown = thrown_by([&] {
        scene.with_fence(native,
                         [&] {
                           ++runs;
                           scene.caller.run("INSERT INTO app VALUES (1)");
                           scene.caller.run("CREATE TABLE made_" + std::to_string(++scene.made) + " (n bigint)");
                           if (asks_for_more) throw Error(Fault::conflict, "again");
                         },
                         {.attempts = 2});
      });
      if (scene.stored() == 0) {  // it was undone with the rest, and run again
        CHECK(asks_for_more);
        CHECK(thrown.fault == Fault::conflict);
        CHECK(runs == 2);
      } else {
        CHECK(runs == 1);
        CHECK(scene.stored() == 1);
        if (thrown.fault) CHECK(thrown.fault == Fault::misuse);
      }
    }
  }
}

TEST_CASE("savepoints inside of the work are the work's own") {
  Scene scene;
  for (const bool native : {true, false}) {
    INFO((native ? "native" : "runner"));
    scene.database.admin().run("DELETE FROM app");
    int runs = 0;
    scene.with_fence(native, [&] {
      ++runs;
      for (const char* sql : {"INSERT INTO app VALUES (1)", "SAVEPOINT s", "INSERT INTO app VALUES (2)",
                              "ROLLBACK TO SAVEPOINT s", "RELEASE SAVEPOINT s", "SAVEPOINT s", "SAVEPOINT t",
                              "INSERT INTO app VALUES (3)", "RELEASE SAVEPOINT t", "SAVEPOINT still_there"})
        scene.caller.run(sql);
    });
    CHECK(runs == 1);
    CHECK(scene.stored() == 2);
    CHECK(scene.database.admin().number("SELECT count(*) FROM app WHERE n = 2") == 0);
  }
}

TEST_CASE("work that asks to be run again, from within its savepoints too, is run again and stored once") {
  Scene scene;
  for (const bool native : {true, false}) {
    INFO((native ? "native" : "runner"));
    scene.database.admin().run("DELETE FROM app");
    int runs = 0;
    scene.with_fence(native, [&] {
      scene.caller.run("INSERT INTO app VALUES (1)");
      scene.caller.run("SAVEPOINT s");
      scene.caller.run("INSERT INTO app VALUES (2)");
      if (++runs < 3) throw Error(Fault::conflict, "again");
    });
    CHECK(runs == 3);
    CHECK(scene.stored() == 2);
  }
}

TEST_CASE("work that swallows the failure of a statement is stored as a whole or not at all, and is not run again") {
  Scene scene;
  for (const bool native : {true, false}) {
    INFO((native ? "native" : "runner"));
    scene.database.admin().run("DELETE FROM app");
    int runs = 0;
    const auto thrown = thrown_by([&] {
      scene.with_fence(native, [&] {
        ++runs;
        scene.caller.run("INSERT INTO app VALUES (1)");
        try {
          scene.caller.run("INSERT INTO nowhere VALUES (1)");
        } catch (const std::exception&) {}
      });
    });
    CHECK(runs == 1);
    if (thrown.fault) CHECK(thrown.fault == Fault::misuse);
    CHECK(scene.stored() == (thrown.fault ? 0 : 1));
  }
}

TEST_CASE(
    "with_fence does not join a transaction that is open, however it was handed over, and commits nothing of it") {
  Scene scene;
  for (const bool native : {true, false}) {
    for (const auto& beginning : scene.database.test_database().beginnings()) {
      INFO((native ? "native" : "runner") << ", " << beginning.name);
      bool ran = false;
      scene.caller.begin(beginning);
      scene.caller.run("INSERT INTO app VALUES (1)");
      const auto thrown = thrown_by([&] { scene.with_fence(native, [&] { ran = true; }); });
      CHECK(thrown.fault == Fault::misuse);
      CHECK_MESSAGE(thrown.names("open already"), thrown.text);
      CHECK_FALSE(ran);
      CHECK(scene.stored() == 0);
      scene.caller.run("ROLLBACK");
      CHECK(scene.stored() == 0);
    }
  }
}

TEST_CASE("a with_fence inside of another one is misuse, and nothing is committed by that") {
  Scene scene;
  auto second = scene.engine.lock("b");
  const auto thrown = thrown_by([&] {
    scene.with_fence(true, [&] {
      scene.caller.run("INSERT INTO app VALUES (1)");
      const auto inner = thrown_by([&] { second.with_fence(scene.caller.native(), [] {}); });
      CHECK(inner.fault == Fault::misuse);
    });
  });
  CHECK(thrown.fault == Fault::misuse);
  CHECK(scene.stored() == 0);
  CHECK(second.valid());
  // One that is over is refused before that.
  second.release();
  const auto over = thrown_by([&] {
    scene.with_fence(true, [&] {
      scene.caller.run("INSERT INTO app VALUES (1)");
      CHECK(thrown_by([&] { second.with_fence(scene.caller.native(), [] {}); }).fault == Fault::lost);
    });
  });
  CHECK(over.fault == Fault::lost);
  CHECK(scene.stored() == 0);
}

TEST_CASE("a commit whose answer is lost is not run again") {
  Scene scene;
  SqlRunner loses = scene.caller.runner();
  loses.run = [&, run = loses.run](std::string_view sql) {
    auto row = run(sql);
    if (sql.find("COMMIT") != sql.npos) throw std::runtime_error("the answer is lost");
    return row;
  };
  int runs = 0;
  CHECK_THROWS_WITH_AS(scene.lock.with_fence(loses,
                                             [&] {
                                               ++runs;
                                               scene.caller.run("INSERT INTO app VALUES (1)");
                                             }),
                       "the answer is lost", std::runtime_error);
  CHECK(runs == 1);
  CHECK(scene.stored() == 1);
}

TEST_CASE(
    "a second lock can be fenced in the same transaction; if that is refused nothing is stored, whatever the work "
    "does") {
  Scene scene;
  auto second = scene.engine.lock("b");
  for (const bool native : {true, false}) {
    INFO((native ? "native" : "runner"));
    scene.database.admin().run("DELETE FROM app");
    scene.with_fence(native, [&] {
      native ? second.fence(scene.caller.native()) : second.fence(scene.caller.runner());
      scene.caller.run("INSERT INTO app VALUES (1)");
    });
    CHECK(scene.stored() == 1);
  }
  scene.database.admin().run("DELETE FROM app");
  for (const bool native : {true, false}) {
    for (const char* end : {"SELECT 1", "COMMIT"}) {
      INFO((native ? "native" : "runner") << ", " << end);
      Caller caller(scene.database.test_database());
      auto lost = scene.engine.lock("c");
      CHECK(scene.engine.force_release("c", lost.token()));
      int runs = 0;
      bool told = false;
      try {
        const auto work = [&] {
          ++runs;
          caller.run("INSERT INTO app VALUES (1)");
          CHECK(thrown_by([&] { native ? lost.fence(caller.native()) : lost.fence(caller.runner()); }).fault ==
                Fault::lost);
          try {
            caller.run(end);
          } catch (const std::exception&) {}
        };
        native ? scene.lock.with_fence(caller.native(), work) : scene.lock.with_fence(caller.runner(), work);
      } catch (const dlock::Error& error) {  // not what the end of the transaction made of it
        told = error.fault() == Fault::lost;
      }
      CHECK(told);
      CHECK(runs == 1);
      CHECK(scene.stored() == 0);
    }
  }
}
