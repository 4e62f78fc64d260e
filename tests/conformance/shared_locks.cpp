// The promise that many may read while nobody writes, and that a lost reader cannot commit.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"
#include "support/readers.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace dlock::test::readers;
using namespace std::chrono_literals;

TEST_CASE("any number of readers share a name, and a writer has it for itself") {
  Database database;
  auto engine = apart(database), other = apart(database);
  std::vector<Lock> readers;
  for (int i = 0; i < 10; ++i) {
    auto lock = (i % 2 == 0 ? engine : other).try_lock("a", reading);
    REQUIRE(lock);
    readers.push_back(std::move(*lock));
  }
  CHECK_FALSE(other.try_lock("a"));
  const auto row = engine.inspect("a");
  REQUIRE(row);
  CHECK(row->state == State::held);
  CHECK(row->mode == Mode::shared);
  CHECK(row->entries == 10);
  for (auto& lock : readers) CHECK(lock.release() == Released::freed);
  CHECK(holders(database) == 0);
  auto writer = other.try_lock("a");
  REQUIRE(writer);
  CHECK(engine.inspect("a")->mode == Mode::exclusive);
  CHECK_FALSE(engine.try_lock("a", reading));
}

TEST_CASE(
    "a reader's token is larger than that of every writer before it, and smaller than that of every one after it") {
  Database database;
  auto engine = apart(database);
  auto last = engine.lock("a").token();
  for (int round = 0; round < 3; ++round) {
    std::vector<Lock> readers;
    for (int i = 0; i < 3; ++i) {
      readers.push_back(engine.lock("a", reading));
      CHECK(readers.back().token() > last);
      last = readers.back().token();
    }
    readers.clear();
    const auto writer = engine.lock("a");
    CHECK(writer.token() > last);
    last = writer.token();
  }
}

TEST_CASE("a writer waits for the last reader, and is woken by it") {
  Database database;
  auto engine = apart(database), other = apart(database);
  auto one = engine.lock("a", reading), two = engine.lock("a", reading);
  std::atomic<bool> written{false};
  std::jthread writer([&] {
    const auto lock = other.lock("a");
    written = true;
  });
  CHECK(eventually([&] { return database.admin().number("SELECT count(*) FROM resource_lock_waiter") == 1; }));
  one.release();
  CHECK_FALSE(written);
  CHECK(database.admin().number("SELECT count(*) FROM resource_lock_holder") == 1);
  two.release();
  CHECK(eventually([&] { return written.load(); }));
}

TEST_CASE("a writer that waits keeps readers out who come later, and they come in after it") {
  Database database;
  auto engine = apart(database), other = apart(database);
  auto first = engine.lock("a", reading);
  std::atomic<int> step{0}, wrote_at{0}, read_at{0};
  std::jthread writer([&] {
    const auto lock = other.lock("a");
    wrote_at = ++step;
  });
  REQUIRE(eventually([&] { return database.admin().number("SELECT count(*) FROM resource_lock_waiter") == 1; }));
  CHECK_FALSE(engine.try_lock("a", reading));
  std::jthread reader([&] {
    const auto lock = engine.lock("a", reading);
    read_at = ++step;
  });
  REQUIRE(eventually([&] { return database.admin().number("SELECT count(*) FROM resource_lock_waiter") == 2; }));
  first.release();
  CHECK(eventually([&] { return read_at == 2; }));
  CHECK(wrote_at == 1);
}

TEST_CASE("all readers come in that waited for a writer") {
  Database database;
  std::vector<Engine> engines;  // the writer's own is the first: who lets go there looks for an heir
  for (int i = 0; i < 3; ++i) engines.push_back(apart(database));
  for (const auto fairness : {Fairness::barging, Fairness::fifo}) {
    auto options = reading;
    options.fairness = fairness;
    auto writer = engines[0].lock("a");
    std::atomic<int> inside{0};
    std::atomic<bool> leave{false};
    std::vector<std::jthread> readers;
    for (std::size_t i = 0; i < 9; ++i)
      readers.emplace_back([&, i] {
        const auto lock = engines[i % 3].lock("a", options);
        ++inside;
        while (!leave) std::this_thread::sleep_for(1ms);
      });
    for (auto& engine : engines) CHECK(eventually([&] { return engine.stats().waiting["a"] == 3; }));
    CHECK(inside == 0);
    writer.release();
    CHECK(eventually([&] { return inside == 9; }));
    leave = true;
  }
}

TEST_CASE("a reader that died holds nobody up for longer than its lease") {
  Database database;
  auto engine = apart(database), other = apart(database);
  auto alive = engine.lock("a", reading);
  const Stopwatch since_before_the_grant;
  auto dead = engine.lock("a", {.mode = Mode::shared, .lease = 500ms, .renew = false});
  dead.detach();
  alive.release();
  const auto writer = answered([&] { return other.try_lock_for("a", far_longer()); });
  REQUIRE(writer);
  CHECK(since_before_the_grant.elapsed() >= 499ms);
}

TEST_CASE("readers are renewed, all of them, and hold on for longer than their lease") {
  Database database;
  auto engine = apart(database), other = apart(database);
  std::vector<Lock> readers;
  auto options = renewed_often();
  options.mode = Mode::shared;
  for (int i = 0; i < 50; ++i) readers.push_back(engine.lock("a", options));
  const auto first_end = [&] { return database.admin().number("SELECT min(expires_at) FROM resource_lock_holder"); };
  for (int round = 0; round < 2; ++round) {
    const auto before = first_end();
    CHECK(eventually([&] { return first_end() > before; }));
  }
  CHECK(database.admin().number("SELECT count(*) FROM resource_lock_holder h, resource_lock l WHERE l.name = 'a' "
                                "AND h.expires_at > l.expires_at") == 0);
  CHECK_FALSE(other.try_lock("a"));
  CHECK(std::all_of(readers.begin(), readers.end(), [](const Lock& lock) { return lock.valid(); }));
}

TEST_CASE("a reader whose lease was over is not renewed once a writer was there") {
  Database database;
  EventLog news;
  auto engine = database.engine({.reentrance = Reentrance::none, .observer = news.observer()});
  auto other = apart(database);
  auto lock = engine.lock("a", {.mode = Mode::shared, .lease = 1h});
  database.admin().expire("a");
  auto writer = other.try_lock("a");
  REQUIRE(writer);
  CHECK(writer->token() > lock.token());
  CHECK(thrown_by([&] { lock.extend(1h); }).fault == Fault::lost);
  CHECK(lock.lost().stop_requested());
  CHECK(lock.release() == Released::was_lost);
  CHECK(database.admin().owner("a") == writer->owner());
  // Nor by readers who came after it.
  auto again = engine.lock("b", {.mode = Mode::shared, .lease = 1h});
  database.admin().expire("b");
  other.lock("b").release();
  const auto newcomer = other.lock("b", reading);
  CHECK(thrown_by([&] { again.extend(1h); }).fault == Fault::lost);
  CHECK(newcomer.valid());
}

TEST_CASE("what renews all of an engine's leases refuses a reader once a writer was there") {
  Database database;
  const auto table = database.table();
  auto other = apart(database);
  Hand reader(*table, 1, "a");
  REQUIRE(reader.reading().acquire());
  const store::LeaseKey key{"a", reader.owner(), reader.token(), 1h, Mode::shared};
  const auto renewed = [&] { return patiently([&] { return table->renew({&key, 1}, soon()); }).at(0); };
  CHECK(renewed() == store::Renewed::yes);
  database.admin().expire("a");
  auto writer = other.try_lock("a", {.lease = 1h});
  REQUIRE(writer);
  const auto until = database.admin().expires_at("a");
  CHECK(renewed() == store::Renewed::lost);
  CHECK(database.admin().owner("a") == writer->owner());
  CHECK(database.admin().expires_at("a") == until);
  // Nor under the gate of readers who came after the writer.
  writer->release();
  const auto newcomer = other.lock("a", {.mode = Mode::shared, .lease = 1h});
  CHECK(renewed() == store::Renewed::lost);
  CHECK(newcomer.valid());
}

TEST_CASE("a reader whose lease was over holds on where nobody wrote") {
  Database database;
  auto engine = apart(database);
  auto lock = engine.lock("a", {.mode = Mode::shared, .lease = 1h});
  const auto other = engine.lock("a", reading);
  expire_one(database, lock);
  lock.extend(1h);
  CHECK(lock.valid());
  CHECK(database.admin().number("SELECT count(*) FROM resource_lock_holder h, resource_lock l WHERE l.name = 'a' "
                                "AND h.expires_at <= l.expires_at AND h.expires_at - h.acquired_at > 3000000000") == 1);
}

TEST_CASE("the name is closed no longer than for the reader that stays longest") {
  Database database;
  auto engine = apart(database);
  auto longest = engine.lock("a", {.mode = Mode::shared, .lease = 1h});
  const auto longer = engine.lock("a", {.mode = Mode::shared, .lease = 10min});
  const auto with_both = database.admin().expires_at("a");
  longest.release();
  CHECK(database.admin().expires_at("a") < with_both - 40min);
  CHECK(database.admin().number("SELECT count(*) FROM resource_lock_holder h, resource_lock l WHERE l.name = 'a' "
                                "AND h.expires_at <> l.expires_at") == 0);
}

TEST_CASE("of readers and writers at once nobody reads while somebody writes") {
  Database database;
  std::vector<Engine> engines;
  for (int i = 0; i < 3; ++i) engines.push_back(apart(database));
  std::atomic<int> readers{0}, writers{0}, wrong{0};
  in_parallel(9, [&](int i) {
    auto& engine = engines[static_cast<std::size_t>(i % 3)];
    for (int round = 0; round < 8; ++round) {
      if (i % 3 == 0) {
        const auto lock = engine.lock("a");
        if (++writers != 1 || readers != 0) ++wrong;
        std::this_thread::yield();
        if (readers != 0) ++wrong;
        --writers;
      } else {
        const auto lock = engine.lock("a", reading);
        ++readers;
        if (writers != 0) ++wrong;
        std::this_thread::sleep_for(1ms);
        --readers;
      }
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("who holds a name enters it in the same mode; as a reader it cannot ask to write") {
  Database database;
  auto engine = database.engine();
  {
    const auto writer = engine.lock("a");
    const auto inner = engine.lock("a", reading);
    CHECK(inner.token() == writer.token());
  }
  auto reader = engine.lock("a", reading);
  {
    const auto inner = engine.lock("a", reading);
    CHECK(inner.token() == reader.token());
    CHECK(thrown_by([&] { reader.try_upgrade(); }).fault == Fault::misuse);
  }
  const auto told = thrown_by([&] { static_cast<void>(engine.try_lock("a")); });
  CHECK(told.fault == Fault::misuse);
  CHECK(told.text.find("try_upgrade") != std::string::npos);
  CHECK(reader.valid());
  CHECK(reader.try_upgrade());
  CHECK(engine.hold_count("a") == 1);
}

TEST_CASE("what a reader writes is committed if nobody wrote meanwhile, and is refused after that") {
  Database database;
  database.admin().run("CREATE TABLE app (n bigint)");
  auto engine = apart(database), other = apart(database);
  for (const auto& beginning : database.test_database().beginnings()) {
    INFO(beginning.name);
    auto lock = engine.lock("a", {.mode = Mode::shared, .lease = 1h});
    const auto beside = other.lock("a", reading);
    Caller caller(database.test_database());
    caller.begin(beginning);
    lock.fence(caller.native());
    caller.run("INSERT INTO app VALUES (1)");
    caller.run("COMMIT");
    lock.with_fence(caller.native(), [&] { caller.run("INSERT INTO app VALUES (1)"); });
    CHECK(lock.valid());
  }
  const auto before = database.admin().number("SELECT count(*) FROM app");
  CHECK(before == 2 * static_cast<long long>(database.test_database().beginnings().size()));
  for (const auto& beginning : database.test_database().beginnings()) {
    INFO(beginning.name);
    auto lock = engine.lock("a", {.mode = Mode::shared, .lease = 1h});
    database.admin().expire("a");
    auto writer = other.lock("a");
    Caller caller(database.test_database());
    caller.begin(beginning);
    CHECK(thrown_by([&] { lock.fence(caller.native()); }).fault == Fault::lost);
    try {
      caller.run("INSERT INTO app VALUES (2)");
      caller.run("COMMIT");
    } catch (const std::exception&) {  // it was made impossible
    }
    CHECK(database.admin().number("SELECT count(*) FROM app") == before);
  }
}

TEST_CASE("while a reader's fenced transaction is open nobody writes, although its lease has expired") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none, .bound_idle = false});
  auto other = database.engine({.timeouts = {.request = time_in_vain()}});
  const auto unrenewed = 1s * slowness();
  Caller caller(database.test_database());
  auto lock = engine.lock("a", {.mode = Mode::shared, .lease = unrenewed, .renew = false});
  caller.begin(database.test_database().beginnings().front());
  lock.fence(caller.native());
  CHECK(eventually([&] { return lock.remaining() == Duration{}; }));
  CHECK(granted_nothing([&] { return other.try_lock_for("a", 2 * unrenewed).has_value(); }));
  caller.run("COMMIT");
  CHECK(answered([&] { return other.try_lock_for("a", far_longer()); }));
}

TEST_CASE("a reader that was released by force is lost, and so are all beside it") {
  Database database;
  auto engine = apart(database), other = apart(database);
  auto one = engine.lock("a", reading), two = other.lock("a", reading);
  CHECK(engine.force_release("a", engine.inspect("a")->token, "to test it"));
  auto writer = engine.try_lock("a");
  REQUIRE(writer);
  CHECK(thrown_by([&] { one.extend(1h); }).fault == Fault::lost);
  CHECK(thrown_by([&] { two.extend(1h); }).fault == Fault::lost);
}

TEST_CASE("a reader's grant is adopted, by one") {
  Database database;
  auto engine = apart(database), other = apart(database);
  const auto beside = engine.lock("a", reading);
  auto lock = engine.lock("a", reading);
  const auto grant = lock.detach();
  CHECK(other.renew("a", grant));
  auto adopted = other.adopt("a", grant);
  REQUIRE(adopted);
  CHECK(adopted->token() == grant.token);
  CHECK(adopted->owner() != grant.owner);
  CHECK_FALSE(engine.adopt("a", grant));
  adopted->extend(1h);
  adopted->update_metadata("still here");
  CHECK(database.admin().number("SELECT count(*) FROM resource_lock_holder WHERE meta = 'still here'") == 1);
  CHECK(adopted->release() == Released::freed);
  CHECK(holders(database) == 1);
}

TEST_CASE("a reader within its at-least time keeps writers away after its release") {
  Database database;
  auto engine = apart(database), other = apart(database);
  const Stopwatch since_before_the_grant;
  const auto closed = 1500ms * slowness();
  auto lock = engine.lock("a", {.mode = Mode::shared, .at_least = closed});
  CHECK(lock.release() == Released::freed);
  CHECK_FALSE(other.try_lock("a"));
  CHECK(read_in(other));
  const auto writer = answered([&] { return other.try_lock_for("a", far_longer()); });
  REQUIRE(writer);
  CHECK(since_before_the_grant.elapsed() >= closed - 1ms);
}

TEST_CASE("an attempt to read that takes effect late is refused, once it was given up") {
  Database database;
  const auto table = database.table();
  const Name name("a");
  store::AcquireRequest ask{name, std::string_view{"0000000000000000000000000000000a"}, "", "", "", 1h, {}, ""};
  ask.mode = Mode::shared;
  const auto soon = Deadline(later(BootClock::now(), far_longer()));
  table->withdraw("a", ask.owner, soon, Mode::shared);
  CHECK_FALSE(table->acquire(ask, soon).token);
  ask.owner = "0000000000000000000000000000000b";
  const auto first = table->acquire(ask, soon).token;
  REQUIRE(first);
  CHECK(table->acquire(ask, soon).token == first);  // once more: the same grant
  CHECK(holders(database) == 2);
  table->withdraw("a", ask.owner, soon, Mode::shared);
  CHECK_FALSE(table->acquire(ask, soon).token);
  CHECK(database.admin().owner("a").empty());
}

TEST_CASE("an attempt to read that is repeated when a writer has the name takes nothing from it") {
  Database database;
  auto engine = apart(database);
  const auto table = database.table();
  const Name name("a");
  store::AcquireRequest ask{name, std::string_view{"0000000000000000000000000000000a"}, "", "", "", 1h, {}, ""};
  ask.mode = Mode::shared;
  const auto soon = Deadline(later(BootClock::now(), far_longer()));
  REQUIRE(table->acquire(ask, soon).token);
  database.admin().expire("a");
  auto writer = engine.try_lock("a");
  REQUIRE(writer);
  CHECK_FALSE(table->acquire(ask, soon).token);
  CHECK(database.admin().owner("a") == writer->owner());
  CHECK_FALSE(engine.try_lock("a", reading));
  writer->extend(1h);
}

TEST_CASE(
    "readers of a name that several wait for are no deadlock, and those of two names who wait for each other are") {
  Database database;
  auto engine = database.engine(), other = database.engine();
  std::atomic<int> deadlocks{0}, granted{0};
  std::latch holding(2);
  in_parallel(2, [&](int i) {
    auto& mine = i == 0 ? engine : other;
    const std::string own = i == 0 ? "x" : "y", others = i == 0 ? "y" : "x";
    auto lock = mine.lock(own, reading);
    holding.arrive_and_wait();
    const auto thrown = thrown_by([&] {
      if (mine.try_lock_for(others, 4min)) ++granted;
    });
    if (thrown.fault == Fault::deadlock) ++deadlocks;
    lock.release();
  });
  CHECK(deadlocks == 1);
  CHECK(granted == 1);
}

TEST_CASE("a writer of a reader's node does not come in beside it, nor take its place") {
  Database database;
  for (const bool exclusive : {false, true}) {
    auto engine = database.engine({.reentrance = Reentrance::none, .node = "replica-0"});
    auto node = database.engine({.reentrance = Reentrance::node, .node = "replica-0", .node_exclusive = exclusive});
    auto reader = engine.lock("a", reading);
    CHECK_FALSE(node.try_lock("a"));
    reader.extend(1h);
    CHECK(reader.valid());
  }
}

TEST_CASE("a late attempt is taken back without what its owner has, and without opening what is closed") {
  Database database;
  const auto table = database.table();
  const Name name("a");
  store::AcquireRequest ask{name, std::string_view{"0000000000000000000000000000000a"}, "", "", "", 1h, {}, ""};
  ask.mode = Mode::shared;
  const auto soon = Deadline(later(BootClock::now(), far_longer()));
  const auto token = table->acquire(ask, soon).token;
  REQUIRE(token);
  table->withdraw("a", ask.owner, soon, Mode::shared, *token);
  store::LeaseKey key{"a", ask.owner, *token, 1h, Mode::shared};
  CHECK(table->extend(key, 1h, {}, soon) == store::Renewed::yes);
  CHECK(table->release(key, soon));
  CHECK_FALSE(table->release(key, soon));
  table->withdraw("a", ask.owner, soon, Mode::shared, *token);
  CHECK_FALSE(table->acquire(ask, soon).token);
  ask.owner = "0000000000000000000000000000000b";
  ask.at_least = 1h;
  key.owner = ask.owner;
  key.token = table->acquire(ask, soon).token.value();
  CHECK(table->release(key, soon));
  table->withdraw("a", ask.owner, soon, Mode::shared);
  CHECK(table->look("a", 0, soon).opens_in > 50min);
  CHECK_FALSE(table->acquire(ask, soon).token);
  database.admin().run("UPDATE resource_lock SET owner = NULL");
}

TEST_CASE("the last reader that lives opens the name, whoever died before it") {
  Database database;
  auto engine = apart(database), other = apart(database);
  auto dead = engine.lock("a", {.mode = Mode::shared, .lease = 1h});
  auto alive = engine.lock("a", reading);
  expire_one(database, dead);
  alive.release();
  CHECK(database.admin().owner("a").empty());
  CHECK(other.try_lock("a"));
  CHECK(dead.release() == Released::was_lost);
}

TEST_CASE("who died among readers is told as abandoned, and who let go is not") {
  Database database;
  EventLog news;
  auto engine = database.engine({.reentrance = Reentrance::none, .label = "dead", .observer = news.observer()});
  auto other = database.engine({.reentrance = Reentrance::none, .label = "good"});
  auto dead = engine.lock("a", {.mode = Mode::shared, .lease = 1h, .renew = false});
  auto good = other.lock("a", {.mode = Mode::shared, .at_least = 1h});
  dead.detach();
  good.release();
  database.admin().expire("a");
  database.admin().run("UPDATE resource_lock_holder SET expires_at = 1, reopens_at = 0");
  static_cast<void>(engine.reap());
  REQUIRE(news.comes(Event::Kind::abandoned));
  CHECK(news.of(Event::Kind::abandoned).size() == 1);
  CHECK(news.of(Event::Kind::abandoned).front().name == "a");
  CHECK(holders(database) == 0);
  CHECK(engine.inspect("a")->state == State::free);
}

TEST_CASE("who died among readers a moment ago is told when their lock is settled, by a round and by a pass") {
  for (const auto& [pass, ago] : {std::pair{false, 0min}, {true, 0min}, {true, 2min}}) {
    INFO(pass << ", " << ago.count() << " min ago");
    Database database;
    EventLog news;
    auto one = database.engine({.reentrance = Reentrance::none, .label = "one"});
    auto two = database.engine({.reentrance = Reentrance::none, .label = "two"});
    for (auto* each : {&one, &two}) each->lock("a", {.mode = Mode::shared, .lease = 1h, .renew = false}).detach();
    database.admin().age("a", 1h + ago);
    {
      auto reaper = database.engine({.observer = news.observer()});
      Reaping preview{.glob = "a*"};
      preview.dry_run = true;
      CHECK(reaper.reap_all(preview).abandoned == 2);
      preview.limit = 1;
      CHECK(reaper.reap_all(preview).abandoned == 1);
      preview.glob = "b*";
      CHECK(reaper.reap_all(preview).abandoned == 0);
      const auto reaped = pass ? reaper.reap_all({.glob = "a*", .limit = 2}) : reaper.reap(2);
      CHECK(reaped.abandoned == 2);
      CHECK(reaper.reap_all().abandoned == 0);
    }
    CHECK(news.of(Event::Kind::abandoned).size() == 2);
    for (const auto& told : news.of(Event::Kind::abandoned)) CHECK(told.name == "a");
    CHECK(holders(database) == 0);
  }
}
