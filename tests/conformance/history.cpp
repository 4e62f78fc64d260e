// Tests that a history has one row for each grant that has ended, however it ended, and none beside.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <dlock/guard.hpp>
#include <dlock/history.hpp>
#include <dlock/semaphore.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;
using schema::SchemaState;

namespace {

// A database that keeps a history.
struct Kept : Database {
  Kept() {
    const auto made = schema::make_history(url());
    REQUIRE_MESSAGE(made.state == SchemaState::good, made.message);
    REQUIRE(made.changed);
  }
  long long rows() { return admin().number("SELECT count(*) FROM resource_lock_history"); }
};

LockOptions plain(const std::string& label) { return {.renew = false, .label = label}; }

void check(const HistoryEntry& entry, const std::string& label, Outcome outcome, Mode mode = Mode::exclusive,
           const std::string& reason = "") {
  CHECK(entry.node == "web3");
  CHECK(entry.label == label);
  CHECK(entry.outcome == outcome);
  CHECK(entry.mode == mode);
  CHECK(entry.reason == reason);
  CHECK(entry.begun.time_since_epoch() > Duration{});
  CHECK(entry.ended >= entry.begun);
}

HistoryEntry newest(Engine& engine, std::string_view name = "job") {
  const auto entries = engine.history(name, 1);
  REQUIRE(entries.size() == 1);
  return entries.front();
}

}  // namespace

TEST_CASE("each release leaves a row with what the grant was, the newest first, and at most as many as are asked for") {
  Kept database;
  auto engine = database.engine({.node = "web3"});
  std::vector<Token> tokens;
  for (const std::string label : {"first", "second", "third"}) {
    auto lock = engine.try_lock("job", {.label = label});
    REQUIRE(lock);
    CHECK(engine.history("job").size() == tokens.size());  // it goes on
    const auto begun = database.admin().acquired_at("job");
    const auto owner = lock->owner();
    tokens.push_back(lock->token());
    lock->release();
    const auto entry = newest(engine);
    check(entry, label, Outcome::released);
    CHECK(entry.token == tokens.back());
    CHECK(entry.owner == owner);
    CHECK(entry.begun.time_since_epoch() == begun);
    CHECK(entry.ended.time_since_epoch() == database.admin().expires_at("job"));
  }
  engine.try_lock("another", {.label = "beside"}).reset();
  const auto two = engine.history("job", 2);
  REQUIRE(two.size() == 2);
  CHECK(two[0].token == tokens[2]);
  CHECK(two[1].token == tokens[1]);
  CHECK(engine.history("job", 0).empty());
  CHECK(engine.history("nobody's").empty());
  CHECK(database.rows() == 4);
}

TEST_CASE("renewals, extensions, metadata, fences of metadata and tries in vain leave no row") {
  Kept database;
  auto engine = database.engine({.node = "web3"});
  auto other = database.engine();
  auto lock = engine.try_lock("job", {.lease = 30s, .renew_every = 20ms});
  REQUIRE(lock);
  const auto end = database.admin().expires_at("job");
  CHECK(eventually([&] { return database.admin().expires_at("job") > end; }));
  lock->extend(40s);
  lock->update_metadata("{}", Keep::for_next);
  for (int i = 0; i < 5; ++i) CHECK_FALSE(other.try_lock("job"));
  CHECK_FALSE(other.try_lock("job", {.mode = Mode::shared}));
  CHECK_FALSE(answered([&] { return other.try_lock_for("job", 60ms); }));
  auto shared = engine.try_lock("shared", {.mode = Mode::shared});
  auto permit = engine.try_lock("permits", {.mode = Mode::permits, .limit = 2});
  REQUIRE(shared);
  REQUIRE(permit);
  shared->extend(40s);
  permit->update_metadata("{}");
  CHECK_FALSE(other.try_lock("shared"));
  CHECK_FALSE(other.try_lock("permits", {.mode = Mode::permits, .permits = 2, .limit = 2}));
  CHECK(database.rows() == 0);
  lock.reset(), shared.reset(), permit.reset();
  CHECK(database.rows() == 3);
}

TEST_CASE("how a grant ended is told: settled by the reaper, taken over by the next one, forced with the reason") {
  Kept database;
  auto engine = database.engine({.node = "web3"});
  engine.try_lock("job", plain("settled"))->detach();
  database.admin().expire("job");
  const auto end = database.admin().expires_at("job");
  CHECK(engine.reap().abandoned == 1);
  check(newest(engine), "settled", Outcome::expired);
  CHECK(newest(engine).ended.time_since_epoch() == end);

  engine.try_lock("job", plain("overtaken"))->detach();
  database.admin().expire("job");
  const auto over = database.admin().expires_at("job");
  auto next = engine.try_lock("job", plain("stuck"));
  REQUIRE(next);
  check(newest(engine), "overtaken", Outcome::taken_over);
  CHECK(newest(engine).ended.time_since_epoch() == over);

  CHECK(engine.force_release("job", next->token(), "it's stuck"));
  check(newest(engine), "stuck", Outcome::forced, Mode::exclusive, "it's stuck");
  CHECK(next->release() == Released::was_lost);
  CHECK(database.rows() == 3);
}

TEST_CASE("adoption ends no grant; a hand-over, a withdrawal and a conversion end the one before as released") {
  Kept database;
  auto engine = database.engine({.node = "web3"});
  auto lock = engine.try_lock("job", plain("first"));
  REQUIRE(lock);
  auto adopted = engine.adopt("job", lock->detach(), plain("adopter"));
  REQUIRE(adopted);
  CHECK(database.rows() == 0);
  const auto owner = adopted->owner();
  const auto token = adopted->token();
  adopted->detach();
  database.table()->withdraw("job", owner, later(BootClock::now(), 1min));
  check(newest(engine), "adopter", Outcome::released);
  CHECK(newest(engine).token == token);

  auto writer = engine.try_lock("job", plain("writer"));
  REQUIRE(writer);
  const auto alone = writer->token();
  writer->downgrade();
  CHECK(newest(engine).token == alone);
  check(newest(engine), "writer", Outcome::released);
  const auto beside = writer->token();
  REQUIRE(writer->try_upgrade());
  CHECK(newest(engine).token == beside);
  check(newest(engine), "writer", Outcome::released, Mode::shared);
  writer->release();
  check(newest(engine), "writer", Outcome::released);
  CHECK(database.rows() == 4);
}

TEST_CASE("of several who hold a name each has a row of its own, whoever comes last") {
  Kept database;
  auto engine = database.engine({.reentrance = Reentrance::none, .node = "web3"});
  auto one = engine.try_lock("job", {.mode = Mode::shared, .renew = false, .label = "one"});
  auto two = engine.try_lock("job", {.mode = Mode::shared, .renew = false, .label = "two"});
  REQUIRE(one);
  REQUIRE(two);
  const auto second = two->token();
  one->release();
  check(newest(engine), "one", Outcome::released, Mode::shared);
  two->release();
  check(newest(engine), "two", Outcome::released, Mode::shared);
  CHECK(newest(engine).token == second);
  auto permit =
      engine.try_lock("gpu", {.mode = Mode::permits, .permits = 2, .limit = 3, .renew = false, .label = "train"});
  REQUIRE(permit);
  permit->release();
  check(newest(engine, "gpu"), "train", Outcome::released, Mode::permits);
  CHECK(database.rows() == 3);
}

TEST_CASE(
    "those who hold a name together and are ended by force are told at once, and once; who was over has expired") {
  Kept database;
  auto engine = database.engine({.reentrance = Reentrance::none, .node = "web3"});
  std::optional<Lock> dead = engine.try_lock("job", {.mode = Mode::shared, .renew = false, .label = "dead"});
  std::optional<Lock> live = engine.try_lock("job", {.mode = Mode::shared, .renew = false, .label = "live"});
  REQUIRE(dead);
  REQUIRE(live);
  const auto grant = dead->detach();
  database.admin().run(
      fmt::format("UPDATE resource_lock_holder SET expires_at = 1000000000000000 WHERE owner = '{}'", grant.owner));
  CHECK(engine.force_release("job", database.admin().token("job"), "by hand"));
  REQUIRE(database.rows() == 1);
  check(newest(engine), "live", Outcome::forced, Mode::shared, "by hand");
  CHECK(live->release() == Released::was_lost);
  CHECK(database.rows() == 1);
  // Its row went a minute after its lease was over.
  engine.reap();
  REQUIRE(database.rows() == 2);
  const auto entries = engine.history("job");
  CHECK(entries[1].label == "dead");
  CHECK(entries[1].outcome == Outcome::expired);
  // The gate is another's now: what was told stays told when the rows go.
  auto next = engine.try_lock("job", {.mode = Mode::shared, .label = "next"});
  next.reset();
  CHECK(database.rows() == 3);
  std::set<Token> tokens;
  for (const auto& entry : engine.history("job")) tokens.insert(entry.token);
  CHECK(tokens.size() == 3);
}

TEST_CASE("a reader in its at-least time is told when it lets go, and its place leaves no other row") {
  Kept database;
  auto engine = database.engine({.node = "web3"});
  auto lock = engine.try_lock("job", {.mode = Mode::shared, .at_least = 300ms, .renew = false, .label = "reader"});
  REQUIRE(lock);
  lock->release();
  check(newest(engine), "reader", Outcome::released, Mode::shared);
  CHECK(eventually([&] { return engine.try_lock("job").has_value(); }));
  CHECK(database.rows() == 2);
}

TEST_CASE(
    "who takes over from an expired reader, or as a reader from an expired writer, leaves what was there told right") {
  Kept database;
  auto engine = database.engine({.reentrance = Reentrance::none, .node = "web3"});
  engine.try_lock("job", plain("writer"))->detach();
  database.admin().expire("job");
  auto reader = engine.try_lock("job", {.mode = Mode::shared, .renew = false, .label = "reader"});
  REQUIRE(reader);
  check(newest(engine), "writer", Outcome::taken_over);
  reader->detach();
  database.admin().run("UPDATE resource_lock_holder SET expires_at = expires_at - 3600000000");
  database.admin().expire("job");
  auto second = engine.try_lock("job", {.mode = Mode::shared, .renew = false, .label = "second"});
  REQUIRE(second);
  CHECK(database.rows() == 2);
  check(newest(engine), "reader", Outcome::expired, Mode::shared);
  second->release();
  CHECK(database.rows() == 3);
}

TEST_CASE("each entry of a node is told when it leaves, and when another engine takes its place") {
  Kept database;
  auto engine = database.engine({.reentrance = Reentrance::node, .node = "web3"});
  const auto enter = [](Engine& by, const LockOptions& options) {
    return by.try_lock_for("job", far_longer(), options);
  };
  auto one = enter(engine, {.label = "entry"});
  auto two = enter(engine, {.label = "another"});
  REQUIRE(one);
  REQUIRE(two);
  one.reset();
  CHECK(database.rows() == 1);
  check(newest(engine), "entry", Outcome::released, Mode::node);
  two.reset();
  CHECK(database.rows() == 2);
  check(newest(engine), "another", Outcome::released, Mode::node);
  auto left = enter(engine, {.renew = false, .label = "left behind"});
  REQUIRE(left);
  auto restarted = database.engine({.reentrance = Reentrance::node, .node = "web3", .node_exclusive = true});
  auto again = enter(restarted, {.label = "restarted"});
  REQUIRE(again);
  CHECK(database.rows() == 3);
  check(newest(engine), "left behind", Outcome::taken_over, Mode::node);
}

TEST_CASE("a transaction's lock is told with its commit, and a rollback leaves no row") {
  Kept database;
  auto engine = database.engine({.node = "web3", .label = "teller"});
  for (const bool commits : {false, true}) {
    Caller caller(database.test_database());
    caller.begin(database.test_database().beginnings().front());
    const auto token = engine.try_lock_in(caller.native(), "job", 1min);
    REQUIRE(token);
    caller.run(commits ? "COMMIT" : "ROLLBACK");
    CHECK(database.rows() == (commits ? 1 : 0));
    if (!commits) continue;
    const auto entry = newest(engine);
    CHECK(entry.token == *token);
    CHECK(entry.owner.empty());
    CHECK(entry.outcome == Outcome::released);
  }
}

TEST_CASE("many who lock and release many names together leave one row for each grant, and none fails") {
  Kept database;
  constexpr int threads = 8, names = 5, rounds = 12;
  std::vector<Engine> engines;
  for (int i = 0; i < 2; ++i) engines.push_back(database.engine({.node = "web3", .connections = 1}));
  std::atomic<int> exclusive{0}, shared{0}, permits{0};
  in_parallel(threads, [&](int i) {
    auto& engine = engines[static_cast<std::size_t>(i % 2)];
    for (int round = 0; round < rounds; ++round) {
      const auto name = fmt::format("job {}", (i + round) % names);
      if (auto lock = engine.try_lock(name, {.renew = false})) {
        ++exclusive;
        CHECK(lock->release() == Released::freed);
      }
      if (auto lock = engine.try_lock("read", {.mode = Mode::shared, .renew = false, .reentrance = Reentrance::none})) {
        ++shared;
        CHECK(lock->release() == Released::freed);
      }
      if (auto lock = engine.try_lock("gpu", {.mode = Mode::permits, .limit = 3, .renew = false})) {
        ++permits;
        CHECK(lock->release() == Released::freed);
      }
      if (round % 4 != 0) continue;
      std::vector<std::string> all;
      for (int name_of = 0; name_of < names; ++name_of) all.push_back(fmt::format("set {} {}", i, name_of));
      if (auto set = engine.try_lock_all(all, {.renew = false})) exclusive += names;
    }
  });
  CHECK(exclusive > 0);
  CHECK(shared > 0);
  CHECK(permits > 0);
  const auto of_mode = [&](std::string_view mode) {
    return database.admin().number(fmt::format("SELECT count(*) FROM resource_lock_history WHERE mode = '{}'", mode));
  };
  // A set that was refused has given back what it had been granted: nobody refused one here.
  CHECK(of_mode("exclusive") == exclusive);
  CHECK(of_mode("shared") == shared);
  CHECK(of_mode("permits") == permits);
  CHECK(database.admin().number(
            "SELECT count(*) FROM (SELECT DISTINCT name, token, owner FROM resource_lock_history) d") ==
        database.rows());
  CHECK(database.admin().number("SELECT count(*) FROM resource_lock_history WHERE outcome <> 'released'") == 0);
}

TEST_CASE("tokens, answers and counts of rows are no different for what the triggers write") {
  Kept database;
  auto engine = database.engine({.node = "web3", .connections = 1});
  Token last{};
  for (int i = 0; i < 5; ++i) {
    auto lock = engine.try_lock("job", {.renew = false});
    REQUIRE(lock);
    CHECK(number(lock->token()) == number(last) + 1);
    CHECK(database.admin().token("job") == lock->token());
    last = lock->token();
    CHECK(lock->release() == Released::freed);
    CHECK(lock->release() == Released::freed);
  }
  // By force, settled, and taken over: each writes a row in the statement whose answer is read.
  auto forced = engine.try_lock("job", plain("forced"));
  CHECK(number(forced->token()) == number(last) + 1);
  CHECK(engine.force_release("job", forced->token()));
  CHECK_FALSE(engine.force_release("job", forced->token()));
  CHECK(forced->release() == Released::was_lost);
  engine.try_lock("job", plain("left"))->detach();
  database.admin().expire("job");
  const auto before = database.admin().token("job");
  auto next = engine.try_lock("job", plain("next"));
  REQUIRE(next);
  CHECK(number(next->token()) == number(before) + 1);
  CHECK(database.admin().token("job") == next->token());
  CHECK(next->release() == Released::freed);
  auto reader = engine.try_lock("job", {.mode = Mode::shared, .renew = false});
  REQUIRE(reader);
  CHECK(database.admin().token("job") == reader->token());
  CHECK(reader->release() == Released::freed);
}

TEST_CASE("who waits for a release of others is woken as without a history") {
  Kept database;
  auto engine = database.engine();
  auto other = database.engine({.polling = {.first = 20s, .longest = 20s}});
  int rounds = 0;
  // Who hears nothing looks again after more than seven seconds.
  CHECK(eventually([&] {
    ++rounds;
    auto lock = engine.lock("job");
    database.admin().run("UPDATE resource_lock SET wanted_until = 0");
    auto waiting = std::async(std::launch::async, [&] { return other.try_lock_for("job", 1min).has_value(); });
    CHECK(eventually(
        [&] { return database.admin().number("SELECT count(*) FROM resource_lock WHERE wanted_until > 0") > 0; }));
    const Stopwatch since;
    lock.release();
    CHECK(waiting.get());
    return since.elapsed() < 3s;
  }));
  CHECK(database.rows() == 2 * rounds);
}

TEST_CASE("a reaper that is told how much to keep cuts the oldest, others leave the history alone") {
  Kept database;
  auto engine = database.engine({.node = "web3", .reaper = {.retention = 1h, .grace = 50ms}});
  for (int i = 0; i < 20; ++i) engine.try_lock(fmt::format("job {}", i % 2), plain(std::to_string(i))).reset();
  CHECK(engine.reap().history == 0);
  CHECK(database.rows() == 20);
  auto cutting = database.engine({.reaper = {.retention = 1h, .grace = 50ms}, .history = 7});
  // The turn of the first may have to end by its time.
  Engine::Reaped cut;
  CHECK(eventually([&] {
    cut = cutting.reap(4);
    return !cut.elsewhere;
  }));
  CHECK(cut.history == 4);
  CHECK(database.rows() == 16);
  CHECK(cutting.reap_all().history == 9);
  CHECK(database.rows() == 7);
  CHECK(cutting.reap().history == 0);
  const auto left = engine.history("job 1");
  REQUIRE(left.size() == 4);
  CHECK(left.front().label == "19");
  CHECK(left.back().label == "13");
}

TEST_CASE("an engine that reaps by itself keeps its history bounded while others go on") {
  Kept database;
  auto engine = database.engine({.node = "web3"});
  auto cutting = database.engine({.reaper = {.every = 20ms, .retention = 1h, .grace = 50ms}, .history = 10});
  std::atomic<int> releases{0};
  in_parallel(4, [&](int i) {
    for (int round = 0; round < 25; ++round)
      if (auto lock = engine.try_lock(fmt::format("job {}", i), {.renew = false}))
        releases += lock->release() == Released::freed ? 1 : 0;
  });
  CHECK(releases == 100);
  CHECK(eventually([&] { return database.rows() == 10; }));
}

TEST_CASE("without a history it is named what makes one: to who reads it, and to an engine that is to cut it") {
  Database database;
  auto engine = database.engine();
  const auto read = thrown_by([&] { engine.history("job"); });
  CHECK(read.fault == Fault::schema);
  CHECK_MESSAGE(read.names("dlock-migrate history --apply"), read.text);
  const auto opened = thrown_by([&] { database.engine({.history = 100}); });
  CHECK(opened.fault == Fault::schema);
  CHECK_MESSAGE(opened.names("dlock-migrate history --apply"), opened.text);
  CHECK(schema::make_history(database.url()).changed);
  CHECK(engine.history("job").empty());
  auto cutting = database.engine({.history = 100});
  cutting.try_lock("job").reset();
  CHECK(engine.history("job").size() == 1);
}

TEST_CASE("a history is made once, by however many at once, while others lock; taken away it leaves nothing behind") {
  Database database;
  auto engine = database.engine();
  std::atomic<int> good{0};
  in_parallel(4, [&](int i) {
    if (i == 0) {
      for (int round = 0; round < 20; ++round) engine.try_lock("job", {.renew = false}).reset();
      return;
    }
    schema::Options options;
    options.timeouts.ddl_lock = far_longer();
    std::string told;
    options.observer = [&](std::string_view text) { told += text; };
    const auto made = schema::make_history(database.url(), options);
    CHECK_MESSAGE(told.find("try again") == std::string::npos, told);  // it does so by itself
    CHECK_MESSAGE(made.state == SchemaState::good, made.message);
    good += made.state == SchemaState::good ? 1 : 0;
  });
  CHECK(good == 3);
  const auto again = schema::make_history(database.url());
  CHECK_FALSE(again.changed);
  CHECK_MESSAGE(again.message.find("has its history already") != std::string::npos, again.message);
  const auto checked = schema::check(database.url());
  CHECK_MESSAGE(checked.state == SchemaState::good, checked.message);
  const auto dropped = schema::drop_history(database.url());
  CHECK_MESSAGE(dropped.state == SchemaState::good, dropped.message);
  CHECK(dropped.changed);
  CHECK_FALSE(schema::drop_history(database.url()).changed);
  engine.try_lock("job").reset();
  CHECK(thrown_by([&] { engine.history("job"); }).fault == Fault::schema);
  CHECK(schema::make_history(database.url()).changed);
}

TEST_CASE("the tables are not taken back while a history of them is kept, and what to run first is named") {
  const auto test_database = opener().test_database();
  Engine::install_schema(test_database->url());
  CHECK(schema::make_history(test_database->url()).changed);
  for (const bool force : {false, true}) {
    const auto refused = schema::down(test_database->url(), 0, {}, force);
    CHECK(refused.state == SchemaState::failed);
    CHECK_MESSAGE(refused.hint.find("dlock-migrate history --remove --apply") != std::string::npos, refused.hint);
  }
  CHECK(schema::check(test_database->url()).state == SchemaState::good);
  CHECK(schema::drop_history(test_database->url()).changed);
  const auto down = schema::down(test_database->url(), 0);
  CHECK_MESSAGE(down.state == SchemaState::good, down.message);
}

TEST_CASE("a table of somebody else that has the history's name is refused before anything writes to it") {
  Database database;
  database.admin().run("CREATE TABLE resource_lock_history (id INTEGER PRIMARY KEY, note VARCHAR(20))");
  const auto refused = schema::make_history(database.url());
  CHECK(refused.state == SchemaState::drift);
  CHECK_MESSAGE(refused.message.find("resource_lock_history is not a history of locks") != std::string::npos,
                refused.message);
  {
    auto engine = database.engine();
    CHECK(engine.try_lock("job")->release() == Released::freed);
  }
  // Nor is it dropped, or in the way of who takes the lock's tables back.
  database.admin().run("INSERT INTO resource_lock_history VALUES (1, 'theirs')");
  CHECK(schema::drop_history(database.url()).state == SchemaState::drift);
  const auto down = schema::down(database.url(), 0);
  CHECK_MESSAGE(down.state == SchemaState::good, down.message);
  CHECK(database.admin().number("SELECT count(*) FROM resource_lock_history") == 1);
  CHECK(schema::up(database.url()).state == SchemaState::good);
  // One that has taken the place of ours is left alone, and what writes into it goes: the way out of it.
  database.admin().run("DROP TABLE resource_lock_history");
  CHECK(schema::make_history(database.url()).changed);
  database.admin().run("ALTER TABLE resource_lock_history RENAME TO kept_elsewhere");
  database.admin().run("CREATE TABLE resource_lock_history (id INTEGER PRIMARY KEY, note VARCHAR(20))");
  CHECK(schema::drop_history(database.url()).changed);
  {
    auto engine = database.engine();
    CHECK(engine.try_lock("job")->release() == Released::freed);
  }
  CHECK(database.admin().number("SELECT count(*) FROM resource_lock_history") == 0);
  const auto nowhere = opener().test_database();
  const auto missing = schema::make_history(nowhere->url());
  CHECK(missing.state == SchemaState::pending);
  CHECK_MESSAGE(missing.hint.find("dlock-migrate up") != std::string::npos, missing.hint);
}

TEST_CASE("another name of the lock table is another history") {
  Kept database;
  schema::Options options;
  options.table = "other_lock";
  CHECK(schema::up(database.url(), options).state == SchemaState::good);
  CHECK(schema::make_history(database.url(), options).changed);
  auto other = database.engine({.history = 5, .table = "other_lock"});
  other.try_lock("job", plain("there")).reset();
  CHECK(database.rows() == 0);
  CHECK(other.history("job").size() == 1);
  CHECK(schema::drop_history(database.url(), options).changed);
  CHECK_FALSE(schema::make_history(database.url()).changed);
}

TEST_CASE("a caller's session tells of the caller's own last insert after its transaction's lock has left a row") {
  Kept database;
  auto engine = database.engine();
  // Each database knows one of these.
  const std::vector<std::pair<std::string, std::string>> ways{
      {"BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY", "SELECT LAST_INSERT_ID()"},
      {"BIGSERIAL PRIMARY KEY", "SELECT lastval()"},
      {"INTEGER PRIMARY KEY AUTOINCREMENT", "SELECT last_insert_rowid()"}};
  std::string query;
  for (const auto& [column, asks] : ways) try {
      database.admin().run(fmt::format("CREATE TABLE numbered (id {}, note INTEGER)", column));
      database.admin().run("INSERT INTO numbered (note) VALUES (1)");
      if (database.admin().number(asks) != 1) continue;
      query = asks;
      break;
    } catch (const std::exception&) { database.admin().run("DROP TABLE IF EXISTS numbered"); }
  REQUIRE_FALSE(query.empty());
  for (int i = 0; i < 40; ++i) database.admin().run("INSERT INTO numbered (note) VALUES (1)");
  Caller caller(database.test_database());
  caller.begin(database.test_database().beginnings().front());
  caller.run("INSERT INTO numbered (note) VALUES (2)");
  const auto own = caller.number(query);
  CHECK(own > 40);
  REQUIRE(engine.try_lock_in(caller.native(), "job", 1min));
  CHECK(caller.number(query) == own);
  caller.run("COMMIT");
  CHECK(engine.history("job").size() == 1);
}
