// A lock that has ended fences nothing, in whatever way it ended and whoever else still holds on.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <exception>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

struct Scene {
  Database database{};
  Engine engine = database.engine();
  Scene() { database.admin().run("CREATE TABLE app (n bigint)"); }
  long long stored() { return database.admin().number("SELECT count(*) FROM app"); }

  // In every way there is.
  void check_that_it_never_fences(Lock& lock) {
    for (const bool native : {true, false}) {
      INFO((native ? "native" : "runner"));
      Caller caller(database.test_database());
      caller.begin(database.test_database().beginnings().front());
      caller.run("INSERT INTO app VALUES (1)");
      const auto refused = thrown_by([&] { native ? lock.fence(caller.native()) : lock.fence(caller.runner()); });
      CHECK(refused.fault == Fault::lost);
      try {
        caller.run("COMMIT");
      } catch (const std::exception&) {}
      CHECK(stored() == 0);
      Caller another(database.test_database());
      bool ran = false;
      const auto work = [&] { ran = true; };
      CHECK(thrown_by([&] {
              native ? lock.with_fence(another.native(), work) : lock.with_fence(another.runner(), work);
            }).fault == Fault::lost);
      CHECK_FALSE(ran);
      another.run("INSERT INTO app VALUES (1)");  // its connection was left alone
      CHECK(stored() == 1);
      database.admin().run("DELETE FROM app");
    }
    CHECK(thrown_by([&] { lock.fence_sql(); }).fault == Fault::lost);
  }

  // Whether the text of a fence proves anything.
  bool proves(const std::string& sql) {
    Caller caller(database.test_database());
    caller.begin(database.test_database().beginnings().front());
    bool proved = false;
    try {
      proved = caller.runner().run(sql) == std::vector<std::optional<std::string>>{"1"};
    } catch (const std::exception&) {}
    caller.run("ROLLBACK");
    return proved;
  }
};

}  // namespace

TEST_CASE("a released lock never fences") {
  Scene scene;
  auto lock = scene.engine.lock("a");
  const auto sql = lock.fence_sql();
  CHECK(scene.proves(sql));
  CHECK(lock.release() == Released::freed);
  scene.check_that_it_never_fences(lock);
  CHECK_FALSE(scene.proves(sql));
}

TEST_CASE("a lock that was entered twice does not fence any more once it has left, while the outer one does") {
  Scene scene;
  auto outer = scene.engine.lock("a");
  auto inner = scene.engine.lock("a");
  REQUIRE(inner.owner() == outer.owner());
  CHECK(inner.release() == Released::still_held);
  scene.check_that_it_never_fences(inner);
  CHECK(outer.valid());
  Caller caller(scene.database.test_database());
  outer.with_fence(caller.native(), [&] { caller.run("INSERT INTO app VALUES (1)"); });
  CHECK(scene.stored() == 1);
}

TEST_CASE("an entry of a node that has left never fences, nor does its fence as text, while the others do") {
  Scene scene;
  EngineOptions node;
  node.node = "replica-0";
  node.reentrance = Reentrance::node;
  auto one = scene.database.engine(node), two = scene.database.engine(node);
  auto first = one.lock("a");
  auto second = two.lock("a");
  REQUIRE(second.token() == first.token());
  const auto first_sql = first.fence_sql(), second_sql = second.fence_sql();
  CHECK(scene.proves(first_sql));
  CHECK(scene.proves(second_sql));
  CHECK(first.release() == Released::still_held);
  scene.check_that_it_never_fences(first);
  CHECK_FALSE(scene.proves(first_sql));
  CHECK(scene.proves(second_sql));
  CHECK(second.valid());
  Caller caller(scene.database.test_database());
  second.with_fence(caller.native(), [&] { caller.run("INSERT INTO app VALUES (1)"); });
  CHECK(scene.stored() == 1);
}

TEST_CASE("a detached lock never fences, although its lease goes on") {
  Scene scene;
  auto lock = scene.engine.lock("a", {.lease = 20s});
  static_cast<void>(lock.detach());
  CHECK_FALSE(scene.engine.try_lock("a"));
  scene.check_that_it_never_fences(lock);
  free_by_force(scene.engine, "a");
}

TEST_CASE("a lock that was told to be lost never fences, although nobody has taken it") {
  Scene scene;
  auto lock = scene.engine.lock("a", {.lease = 400ms * slowness(), .renew = false});
  CHECK(eventually([&] { return lock.lost().stop_requested(); }));
  REQUIRE(scene.database.admin().owner("a") == lock.owner());
  scene.check_that_it_never_fences(lock);
  CHECK(lock.loss() == Loss::unconfirmed);
}

TEST_CASE("a lock that was released by force, or whose row is gone, never fences") {
  Scene scene;
  for (const bool gone : {false, true}) {
    INFO("gone: " << gone);
    auto lock = scene.engine.lock("a");
    const auto sql = lock.fence_sql();
    if (gone) scene.database.admin().run("DELETE FROM resource_lock WHERE name = 'a'");
    else CHECK(scene.engine.force_release("a", lock.token()));
    CHECK_FALSE(scene.proves(sql));
    scene.check_that_it_never_fences(lock);
    CHECK(lock.loss());
  }
}
