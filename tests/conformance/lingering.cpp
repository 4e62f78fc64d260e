// The promise of EngineOptions::linger: what was released is granted again in the same process without a
// statement, and whoever else wants it gets it as if it were free.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>
#include <dlock/history.hpp>
#include <dlock/schema.hpp>

#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// For longer than any test takes.
EngineOptions lasting() { return {.lease = 1h, .label = "the lingering one", .linger = 10min}; }

// A lock that has been released and lingers, as far as its row says.
struct Scene {
  Database database{};
  Engine engine, other;
  Holder row{};

  explicit Scene(const EngineOptions& options = lasting())
      : engine(database.engine(options)), other(database.engine({.label = "the other one"})) {
    // In a crowd an answer may come too late for that: then once more.
    REQUIRE(eventually([&] {
      CHECK(engine.lock("job").release() == Released::freed);
      row = other.inspect("job").value();
      return options.linger < 1s || lingers();
    }));
  }

  bool lingers() {
    const auto now = other.inspect("job");
    return now && now->state == State::held && now->label == "the lingering one";
  }
  bool is_free() { return other.inspect("job")->state == State::free; }
  // The next grant came without a statement: the row is as it was.
  bool in_memory(const Lock& next) {
    const auto now = other.inspect("job").value();
    return now.owner == row.owner && now.token == row.token && next.token() <= row.token;
  }
};

}  // namespace

TEST_CASE("what was released lingers, and is granted again without a statement, under larger and larger tokens") {
  Scene scene;
  REQUIRE(scene.lingers());
  CHECK(scene.row.passed_on);
  // Where it was not looked at for a moment, as in a crowd, it takes a statement: then once more.
  CHECK(eventually([&] {
    auto first = scene.engine.try_lock("job");
    REQUIRE(first);
    const auto token = first->token();
    scene.engine.try_lock("job").reset();  // an entry of the thread
    first->release();
    scene.row = scene.other.inspect("job").value();
    const auto next = scene.engine.try_lock_for("job", 1min);
    REQUIRE(next);
    CHECK(next->token() > token);
    CHECK(next->valid());
    return scene.in_memory(*next);
  }));
}

TEST_CASE("thousands of grants that linger have tokens of their own, none of them above that of the row") {
  Scene scene;
  Token last{};
  for (int i = 0; i < 5000; ++i) {
    auto lock = scene.engine.try_lock("job");
    REQUIRE(lock);
    REQUIRE(lock->token() > last);
    last = lock->token();
    lock->release();
  }
  CHECK(scene.other.inspect("job")->token >= last);
  const auto next = scene.other.try_lock_for("job", 1min);
  REQUIRE(next);
  CHECK(next->token() > last);
}

TEST_CASE("another engine that tries is granted what lingers, and so is one that waits, in any mode") {
  Scene scene;
  // Who tries waits for a moment only, which may be too short in a crowd.
  CHECK(eventually([&] { return scene.other.try_lock("job").has_value(); }));
  CHECK(scene.engine.lock("job").release() == Released::freed);
  CHECK(scene.other.try_lock_for("job", 1min));
  CHECK(scene.engine.lock("shared").release() == Released::freed);
  CHECK(scene.other.try_lock_for("shared", 1min, {.mode = Mode::shared}));
  CHECK(scene.engine.lock("fifo").release() == Released::freed);
  CHECK(scene.other.try_lock_for("fifo", 1min, {.fairness = Fairness::fifo}));
  CHECK(scene.engine.lock("one").release() == Released::freed);
  CHECK(scene.engine.lock("two").release() == Released::freed);
  CHECK(eventually([&] { return scene.other.try_lock_all({"one", "two"}).has_value(); }));
  CHECK(scene.engine.lock("wait").release() == Released::freed);
  CHECK(scene.other.wait_free("wait", 1min));
}

TEST_CASE("a transaction that waits is granted what lingers") {
  Scene scene;
  Caller caller(scene.database.test_database());
  CHECK(eventually([&] {
    caller.run("BEGIN");
    const bool taken = scene.other.try_lock_in(caller.native(), "job", 1s).has_value();
    caller.run("COMMIT");
    return taken;
  }));
}

TEST_CASE("what is held is nobody else's, whoever wants it, though it came from what lingered") {
  Scene scene;
  const auto held = scene.engine.try_lock("job");
  REQUIRE(held);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(scene.other.try_lock("job"));
  CHECK_FALSE(answered([&] { return scene.other.try_lock_for("job", 200ms); }));
  CHECK(held->valid());
}

TEST_CASE("to its own engine what lingers is free, whatever it is asked for") {
  Scene scene;
  const auto again = [&] { CHECK(scene.engine.lock("job").release() == Released::freed); };
  CHECK(scene.engine.try_lock("job", {.mode = Mode::shared}));
  again();
  CHECK(scene.engine.try_lock("job", {.mode = Mode::permits, .limit = 3}));
  again();
  CHECK(scene.engine.try_lock("job", {.reentrance = Reentrance::node}));
  again();
  CHECK(scene.engine.try_lock_all({"another", "job"}));
  again();
  CHECK(answered([&] { return scene.engine.wait_free("job", 0ms); }));
  again();
  Caller caller(scene.database.test_database());
  caller.run("BEGIN");
  CHECK(scene.engine.try_lock_in(caller.native(), "job", 1min));
  caller.run("ROLLBACK");
  again();
  CHECK(scene.engine.try_lock_for("job", 1min, {.fairness = Fairness::fifo}));
}

TEST_CASE("what is to stand in the row stands there: it does not come from what lingers") {
  Scene scene;
  {
    const auto lock = scene.engine.try_lock("job", {.job = "of its own"});
    REQUIRE(lock);
    CHECK_FALSE(scene.in_memory(*lock));
  }
  CHECK(scene.engine.lock("job").release() == Released::freed);
  {
    const auto lock = scene.engine.try_lock("job", {.label = "by name", .metadata = "said"});
    REQUIRE(lock);
    const auto row = scene.other.inspect("job").value();
    CHECK(row.label == "by name");
    CHECK(row.metadata == "said");
  }
  CHECK(scene.engine.lock("job").release() == Released::freed);
  const auto brief = scene.engine.try_lock("job", {.lease = 20s});
  REQUIRE(brief);
  CHECK(scene.other.inspect("job")->lease == 20s);
  CHECK(brief->remaining() <= 20s);
}

TEST_CASE("trust in what lingered is counted from when the database was asked last") {
  auto options = lasting();
  options.margin = 1ms;
  Scene scene(options);
  CHECK(eventually([&] {
    scene.engine.lock("job").release();
    const Stopwatch time;  // its row was written before
    scene.row = scene.other.inspect("job").value();
    scene.engine.lock("job").release();
    eventually([&] { return time.elapsed() > 100ms; });
    scene.engine.lock("job").release();
    const auto lock = scene.engine.try_lock_for("job", 1min);
    REQUIRE(lock);
    if (!scene.in_memory(*lock)) return false;
    const auto elapsed = time.elapsed();
    CHECK(lock->remaining() + elapsed <= 1h - 1ms);
    return true;
  }));
}

TEST_CASE("a fence proves a grant of what lingered, and refuses the grants before it") {
  Scene scene;
  scene.database.admin().run("CREATE TABLE app (n bigint)");
  auto before = scene.engine.try_lock("job");
  REQUIRE(before);
  before->release();
  auto lock = scene.engine.try_lock("job");
  REQUIRE(lock);
  Caller caller(scene.database.test_database()), late(scene.database.test_database());
  lock->with_fence(caller.native(), [&] { caller.run("INSERT INTO app VALUES (1)"); });
  CHECK(scene.database.admin().number("SELECT count(*) FROM app") == 1);
  late.run("BEGIN");
  CHECK(thrown_by([&] { before->fence(late.native()); }).fault == Fault::lost);
}

TEST_CASE("a grant that was named to others does not go on in memory: who knows it cannot end the next one's") {
  Scene scene;
  auto lock = scene.engine.try_lock("job");
  REQUIRE(lock);
  const auto grant = lock->grant();
  lock->release();
  const auto next = scene.engine.try_lock_for("job", 1min);
  REQUIRE(next);
  CHECK_FALSE(scene.other.renew("job", grant));
  CHECK_FALSE(scene.other.adopt("job", grant).has_value());
  CHECK(next->valid());
  CHECK(scene.other.inspect("job")->owner != grant.owner);
}

TEST_CASE("what lingers is free when its time is over, when its engine ends, and when all is released") {
  auto options = lasting();
  options.linger = 50ms;
  {
    Scene scene(options);
    CHECK(eventually([&] { return scene.is_free(); }));
  }
  {
    Scene scene;
    REQUIRE(scene.lingers());
    CHECK(scene.engine.release_all().freed == 0);
    CHECK(scene.is_free());
  }
  Database database;
  auto other = database.engine();
  {
    auto engine = database.engine(lasting());
    engine.lock("job").release();
    engine.lock("another").release();
  }
  CHECK(other.inspect("job")->state == State::free);
  CHECK(other.inspect("another")->state == State::free);
}

TEST_CASE("what was taken away by force is not granted again from memory") {
  Scene scene;
  CHECK(scene.other.force_release("job", scene.row.token));
  const auto theirs = scene.other.try_lock_for("job", 1min);
  REQUIRE(theirs);
  CHECK(eventually([&] { return !scene.engine.try_lock("job"); }));  // it looks every few milliseconds
  CHECK_FALSE(scene.engine.try_lock("job"));
  CHECK(scene.database.engine().inspect("job")->owner == theirs->owner());
  CHECK(eventually([&] {
    scene.engine.lock("own").release();
    const auto row = scene.engine.inspect("own").value();
    return row.state == State::held && scene.engine.force_release("own", row.token);
  }));
  CHECK(scene.engine.try_lock_for("own", 1min));
}

TEST_CASE(
    "what lingers for longer than a second is granted without another grant being written, to one who only tries as "
    "well") {
  Scene scene;
  CHECK(eventually([&] {
    scene.engine.lock("job").release();
    scene.row = scene.other.inspect("job").value();
    const Stopwatch time;
    eventually([&] { return time.elapsed() > 1200ms; });
    const auto lock = scene.engine.try_lock("job");
    REQUIRE(lock);
    return scene.in_memory(*lock);
  }));
}

TEST_CASE("a release by force that names another token leaves nothing held") {
  Scene scene;
  CHECK_FALSE(scene.engine.force_release("job", Token{1}));
  CHECK(scene.is_free());
}

TEST_CASE("who does not listen is granted what lingers as well") {
  Scene scene;
  auto deaf = scene.database.engine({.label = "the deaf one", .listen = false});
  std::jthread busy([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) scene.engine.lock("job").release();
  });
  CHECK(deaf.try_lock_for("job", 1min));
}

TEST_CASE("asynchronous tries are granted what lingers, also those that leave together") {
  Scene scene(lasting());
  const LockOptions plain{.reentrance = Reentrance::none};
  for (Engine* engine : {&scene.engine, &scene.other}) {
    CHECK(eventually([&] {
      for (const char* name : {"one", "two", "three"}) scene.engine.lock(name, plain).release();
      std::vector<std::promise<bool>> told(3);
      int i = 0;
      for (const char* name : {"one", "two", "three"})
        engine->async_try_lock(name, plain, [&promise = told[static_cast<std::size_t>(i++)]](auto result) {
          promise.set_value(result.has_value());
        });
      bool all = true;
      for (auto& each : told) all = each.get_future().get() && all;
      return all;
    }));
  }
}

TEST_CASE("a lease without end does not linger") {
  Scene scene;
  scene.engine.lock("endless", {.lease = until_released}).release();
  CHECK(scene.other.inspect("endless")->state == State::free);
}

TEST_CASE("where a history is kept nothing lingers, so that each grant has its row") {
  Database database;
  REQUIRE(schema::make_history(database.url()).state == schema::SchemaState::good);
  auto engine = database.engine(lasting()), other = database.engine();
  engine.lock("job").release();
  CHECK(other.inspect("job")->state == State::free);
  engine.lock("job").release();
  CHECK(other.history("job", 100).size() == 2);
}

TEST_CASE("many threads, of an engine whose locks linger and of one whose do not, never hold one name together") {
  Database database;
  auto options = lasting();
  options.linger = 5ms;
  auto engine = database.engine(options), other = database.engine({.lease = 1h});
  std::atomic<int> inside{0}, clashes{0};
  std::atomic<long long> last{0};
  in_parallel(4, [&](int i) {
    auto& mine = i % 2 == 0 ? engine : other;
    for (int round = 0; round < 100; ++round) {
      const auto lock = mine.lock("job");
      if (++inside > 1) ++clashes;
      const auto before = last.exchange(number(lock.token()));
      CHECK(before < number(lock.token()));
      --inside;
    }
  });
  CHECK(clashes == 0);
}
