// The promise that a lock which goes on inside a process without a statement is the same lock for all
// others.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/relay.hpp"
#include "support/slowness.hpp"
#include "types/clock.hpp"

#include <doctest/doctest.h>
#include <dlock/history.hpp>

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <set>
#include <thread>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// What is to go on in memory does so on any machine, sooner or later.
EngineOptions eager(Duration local = 1min) {
  return {.lease = 60s, .reentrance = Reentrance::none, .hand_overs = {.in_a_row = 1000, .time = 1min, .local = local}};
}

// A lock that one thread has given to the next in memory, and one who waits behind that.
struct Scene {
  Database database{};
  Engine engine;
  std::unique_ptr<Relay> relay{};
  Lock before{}, held{};  // the first of them has let go
  Holder row{};           // while the second holds it

  explicit Scene(const LockOptions& last = {}, const LockOptions& first = {}, const EngineOptions& options = eager())
      : engine(database.engine(options)) {
    REQUIRE(eventually([&] { return goes_on(first, last); }));
  }

  // Whoever is not asleep yet when it is its turn is granted the lock by a statement: then once more.
  bool goes_on(const LockOptions& wish, const LockOptions& last) {
    auto first = engine.lock("job", wish);
    relay = std::make_unique<Relay>(engine, std::vector<LockOptions>{wish, wish, last});
    first.release();
    before = relay->next();
    const auto begun = engine.inspect("job");
    before.release();
    held = relay->next();
    row = engine.inspect("job").value();
    if (row.passed_on && row.owner == begun->owner && row.token == begun->token) return true;
    held.release();
    relay->next().release();
    return false;
  }
  Lock next() {
    held.release();
    return relay->next();
  }
  std::string owner() { return database.admin().owner("job"); }
  std::string job_of(const std::string& name) {
    return database.admin().text("SELECT substr(actor, 17) FROM resource_lock WHERE name = '" + name + "'");
  }
};

}  // namespace

TEST_CASE("a lock goes on in memory under tokens of its own, all of them below that of its row, which says so") {
  Scene scene;
  CHECK(scene.held.valid());
  CHECK(number(scene.held.token()) == number(scene.before.token()) + 1);
  CHECK(scene.row.token > scene.held.token());
  CHECK(scene.row.state == State::held);
  const auto token = scene.held.token();
  auto last = scene.next();
  CHECK(last.token() > token);
  CHECK(last.release() == Released::freed);
  const auto free = scene.engine.inspect("job");
  REQUIRE(free);
  CHECK(free->state == State::free);
  CHECK_FALSE(free->passed_on);
  const auto next = scene.engine.try_lock_for("job", 2min);
  REQUIRE(next);
  CHECK(next->token() > free->token);
  CHECK_FALSE(scene.engine.inspect("job")->passed_on);
}

TEST_CASE(
    "what was passed on can be fenced, extended and renewed like any lock; who passed it on can do nothing more") {
  Scene scene;
  scene.database.admin().run("CREATE TABLE app (n bigint)");
  Caller caller(scene.database.test_database());
  scene.held.with_fence(caller.native(), [&] { caller.run("INSERT INTO app VALUES (1)"); });
  CHECK(scene.database.admin().number("SELECT count(*) FROM app") == 1);
  scene.held.extend(10min);
  CHECK(scene.held.remaining() > 5min);
  CHECK(scene.engine.inspect("job")->lease == 10min);
  {
    Caller late(scene.database.test_database());
    late.run("BEGIN");
    CHECK(thrown_by([&] { scene.before.fence(late.native()); }).fault == Fault::lost);
  }
  CHECK(thrown_by([&] { scene.before.extend(1min); }).fault == Fault::lost);
  CHECK(scene.before.release() == Released::freed);
  CHECK(scene.held.valid());
  CHECK(scene.engine.inspect("job")->left > 5min);
  scene.next().release();
}

TEST_CASE("a grant that was fenced is nobody else's until its transaction has ended") {
  auto patient = eager();
  patient.timeouts.release = 10min;  // or a machine that stops for longer would see no request under way
  Scene scene({}, {}, patient);
  Caller caller(scene.database.test_database());
  const auto owner = scene.owner();
  caller.run("BEGIN");
  scene.held.fence(caller.native());
  std::jthread giver([&] { scene.held.release(); });
  CHECK(eventually([&] { return scene.relay->any() || scene.engine.stats().requests_in_flight > 0; }));
  CHECK_FALSE(scene.relay->any());
  caller.run("COMMIT");
  giver.join();
  const auto last = scene.relay->next();
  CHECK(last.token() > scene.row.token);
  CHECK(scene.owner() != owner);
}

TEST_CASE("a grant that was named to others ends as theirs, too: nobody adopts it from who holds the lock after it") {
  Scene scene;
  auto other = scene.database.engine();
  const auto grant = scene.held.grant();
  const auto last = scene.next();
  CHECK(scene.owner() != grant.owner);
  CHECK_FALSE(other.adopt("job", grant).has_value());
  CHECK_FALSE(other.renew("job", grant));
  // One that nobody had asked for names nobody.
  CHECK(scene.before.owner() == std::string(32, '0'));
  CHECK_FALSE(other.adopt("job", scene.before.grant()).has_value());
  CHECK(last.valid());
}

TEST_CASE("a grant that was passed on can be renewed and adopted by what names it, which is the token of its row") {
  Scene scene;
  auto other = scene.database.engine({.label = "another"});
  const auto grant = scene.held.grant();
  CHECK(grant.token == scene.row.token);
  CHECK(other.renew("job", grant));
  CHECK(other.renew("job", grant, 2min));
  CHECK(other.inspect("job")->lease == 2min);
  auto adopted = other.adopt("job", grant);
  REQUIRE(adopted);
  CHECK(adopted->token() == grant.token);
  CHECK(other.inspect("job")->label == "another");
  CHECK(thrown_by([&] { scene.held.extend(1min); }).fault == Fault::lost);
  adopted->extend(3min);
  CHECK(adopted->release() == Released::freed);
  CHECK(scene.relay->next().token() > scene.row.token);
}

TEST_CASE("what was adopted goes to the next one by a statement, in the engine it was passed on in as well") {
  Scene scene;
  auto adopted = scene.engine.adopt("job", scene.held.grant());
  REQUIRE(adopted);
  const auto owner = scene.owner();
  adopted->release();
  const auto last = scene.relay->next();
  CHECK(scene.owner() != owner);
  CHECK(last.token() > scene.row.token);
}

TEST_CASE("what was detached after it was passed on is nobody's until it was adopted and released") {
  Scene scene;
  auto other = scene.database.engine();
  const auto grant = scene.held.detach();
  CHECK(scene.engine.inspect("job")->owner == grant.owner);
  CHECK_FALSE(scene.relay->any());
  auto adopted = other.adopt("job", grant);
  REQUIRE(adopted);
  CHECK(scene.owner() != grant.owner);
  CHECK_FALSE(scene.relay->any());
  const auto owner = scene.owner();
  CHECK(adopted->release() == Released::freed);
  const auto last = scene.relay->next();
  CHECK(scene.owner() != owner);
  CHECK(last.token() > grant.token);
}

TEST_CASE("an entry of a node is passed on to nobody: who waits for the name alone has a row of its own") {
  Database database;
  auto options = eager();
  options.node = "replica-0";
  auto engine = database.engine(options), other = database.engine({.node = "replica-0"});
  const LockOptions entry{.reentrance = Reentrance::node};
  auto first = engine.lock("job", entry), second = other.lock("job", entry);
  REQUIRE(second.token() == first.token());
  Relay relay(engine, std::vector<LockOptions>(2));
  CHECK(second.release() == Released::still_held);
  CHECK(engine.inspect("job")->entries == 1);
  CHECK_FALSE(relay.any());
  CHECK(first.release() == Released::freed);
  auto next = relay.next();
  const auto row = engine.inspect("job");
  CHECK(row->mode == Mode::exclusive);
  CHECK(row->owner == next.owner());
  CHECK(next.owner() != first.owner());
  CHECK(next.owner() != second.owner());
  CHECK(next.token() > first.token());
  next.release();
  CHECK(relay.next().token() > next.token());
}

TEST_CASE("who asks for something of its own has it in the row") {
  for (const auto& wish :
       {LockOptions{.lease = 90s}, LockOptions{.label = "of its own"}, LockOptions{.metadata = "new"},
        LockOptions{.at_least = 1us}, LockOptions{.max_hold = 40s}, LockOptions{.job = "of its own"}}) {
    Scene scene(wish);
    const auto owner = scene.owner();
    const auto last = scene.next();
    CHECK(scene.owner() != owner);
    const auto row = scene.engine.inspect("job");
    const auto lease = wish.max_hold > Duration{} ? Duration{40s} : Duration{wish.lease.value_or(60s)};
    CHECK(row->lease <= lease);
    CHECK(row->lease > lease - 5s);
    if (wish.label) CHECK(row->label == *wish.label);
    CHECK(row->metadata == wish.metadata);
    if (!wish.lease) CHECK_FALSE(row->passed_on);  // else it may go on from there
    if (!wish.job) continue;
    const auto other = scene.engine.lock("other", wish);
    CHECK(scene.job_of("job") == scene.job_of("other"));
  }
}

TEST_CASE("what may be held for so long only goes by a statement, also to one who asks for the same") {
  const LockOptions wish{.max_hold = 40s};
  Database database;
  auto engine = database.engine(eager());
  auto held = engine.lock("job", wish);
  Relay relay(engine, std::vector<LockOptions>(4, wish));
  for (int i = 0; i < 4; ++i) {
    const auto owner = database.admin().owner("job");
    held.release();
    held = relay.next();
    CHECK(database.admin().owner("job") != owner);
    CHECK_FALSE(engine.inspect("job")->passed_on);
  }
}

TEST_CASE("who has a ticket is granted it by a statement, which says that the ticket is served") {
  // Whoever is not asleep yet takes it by itself, which is a statement as well: so it is tried several times.
  for (int round = 0; round < 3; ++round) {
    Scene scene;
    const auto owner = scene.owner();
    Relay queued(scene.engine, std::vector<LockOptions>{{.fairness = Fairness::fifo}});  // goes before who has none
    std::int64_t drawn = 0;
    // The first one is its own; whoever looks after that finds a queue, and may join it.
    REQUIRE(eventually([&] {
      for (const auto& one : scene.engine.waiters("job"))
        if (one.ticket != 0 && (drawn == 0 || one.ticket < drawn)) drawn = one.ticket;
      return drawn != 0;
    }));
    scene.held.release();
    auto next = queued.next();
    CHECK(scene.owner() != owner);
    CHECK(scene.database.admin().number("SELECT served_ticket FROM resource_lock WHERE name = 'job'") == drawn);
    CHECK_FALSE(scene.engine.inspect("job")->passed_on);
    next.release();
    scene.relay->next().release();
  }
}

TEST_CASE("what was extended, or shown in its row, is not passed on in memory") {
  for (const bool extended : {true, false}) {
    Scene scene;
    const auto owner = scene.owner();
    if (extended) scene.held.extend(60s);
    else scene.held.update_metadata("seen");
    const auto last = scene.next();
    CHECK(scene.owner() != owner);
    CHECK(scene.engine.inspect("job")->metadata.empty());
  }
}

TEST_CASE("trust is passed on as it is, and never begins anew") {
  CHECK(eventually([] {
    Scene scene;
    const auto owner = scene.owner();
    const auto left = scene.held.remaining();
    CHECK(eventually([&] { return scene.held.remaining() < left - 20ms; }));
    const auto last = scene.next();
    if (scene.owner() != owner) return false;  // by a statement
    CHECK(last.remaining() < left - 20ms);
    return true;
  }));
}

TEST_CASE("what can be trusted for less than half of its time is passed on by a statement") {
  // Half of it is over before who waits has a row, of whom it is true anyway. If it is lost, that changes nothing.
  const auto lease = 1500ms;
  auto options = eager();
  options.lease = lease;
  const LockOptions unrenewed{.renew = false};
  Scene scene(unrenewed, unrenewed, options);
  CHECK(eventually([&] { return scene.held.remaining() < lease * 47 / 100; }));
  const auto last = scene.next();
  CHECK(scene.owner() != scene.row.owner);  // as it was when it was held first
}

TEST_CASE("the database is asked again when hand_overs.local is over, and always where it is 0") {
  {
    const auto local = 10s;
    Scene scene({}, {}, eager(local));
    const auto owner = scene.owner();
    BootClock::ahead += std::chrono::nanoseconds{local}.count();  // who waits sleeps on
    const auto last = scene.next();
    CHECK(scene.owner() != owner);
  }
  Database database;
  auto engine = database.engine(eager(0s));
  auto held = engine.lock("job");
  Relay relay(engine, std::vector<LockOptions>(4));
  for (int i = 0; i < 4; ++i) {
    held.release();
    held = relay.next();
    const auto row = engine.inspect("job");
    CHECK(row->token == held.token());
    CHECK(row->owner == held.owner());
    CHECK_FALSE(row->passed_on);
  }
}

TEST_CASE(
    "a deadlock is found in which a lock was passed on in memory, and none is imagined with who has passed it on") {
  Database database;
  auto engine = database.engine([] {
    auto options = eager();
    options.reentrance = Reentrance::thread;
    return options;
  }());
  bool passed = false;
  CHECK(eventually([&] {
    auto other = engine.lock("other");
    auto first = engine.lock("job");
    std::atomic<int> holding = 0;
    std::atomic<bool> alone = false;
    std::optional<Fault> told;
    const auto waits = [&](std::size_t count) {
      REQUIRE(eventually([&] { return engine.stats().waiting["job"] == count; }));
    };
    // It holds nothing any more when it waits for what the other of them wants.
    std::jthread giver([&] {
      engine.lock("job").release();
      alone.wait(false);
      CHECK(engine.try_lock_for("other", 2min).has_value());
    });
    waits(1);
    std::jthread taker([&] {
      auto mine = engine.lock("job");
      const auto row = engine.inspect("job");
      passed = row->passed_on && row->token > mine.token();
      holding = 1;
      holding.notify_all();
      told = thrown_by([&] { static_cast<void>(engine.try_lock_for("other", 1min * slowness())); }).fault;
      mine.release();
    });
    waits(2);
    std::jthread last([&] { engine.lock("job").release(); });  // so that it is worth while
    waits(3);
    first.release();
    holding.wait(0);
    alone = true;
    alone.notify_all();
    const auto mine = thrown_by([&] { static_cast<void>(engine.try_lock_for("job", 1min * slowness())); }).fault;
    other.release();
    taker.join();
    CHECK((mine == Fault::deadlock) != (told == Fault::deadlock));
    return passed;
  }));
}

TEST_CASE("where a history is kept each grant has its row in it") {
  Database database;
  REQUIRE(schema::make_history(database.url()).state == schema::SchemaState::good);
  auto engine = database.engine(eager());
  std::set<Token> tokens;
  {
    auto held = engine.lock("job");
    Relay relay(engine, std::vector<LockOptions>(4));
    for (int i = 0; i < 4; ++i) {
      tokens.insert(held.token());
      held.release();
      held = relay.next();
    }
    tokens.insert(held.token());
  }
  std::set<Token> kept;
  for (const auto& entry : engine.history("job", 100)) kept.insert(entry.token);
  CHECK(kept == tokens);
}

TEST_CASE("where the tokens of a row are used up the next ones are the database's, and all of them grow") {
  Database database;
  auto engine = database.engine(eager());
  std::atomic<long long> last = 0;
  std::atomic<int> lost = 0;
  in_parallel(6, [&](int) {
    for (int round = 0; round < 1000; ++round) {
      auto lock = engine.lock("job");
      if (number(lock.token()) <= last.exchange(number(lock.token()))) ++lost;
      if (lock.release() != Released::freed) ++lost;
    }
  });
  CHECK(lost == 0);
  CHECK(number(engine.inspect("job")->token) >= last);
}
