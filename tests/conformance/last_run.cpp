// Tests that a row which nobody holds tells of its last run: who had it, from when to when, and how it ended.
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

std::optional<LastRun> last_run(Engine& engine, std::string_view name = "job") {
  const auto row = engine.inspect(name);
  REQUIRE(row);
  return row->last_run;
}

std::chrono::sys_time<Duration> at(Duration since_the_epoch) {
  return std::chrono::sys_time<Duration>{since_the_epoch};
}

// Whose run it was, and how it ended.
void check(const std::optional<LastRun>& last, const std::string& label, Outcome outcome,
           const std::string& reason = "") {
  REQUIRE(last);
  CHECK(last->node == "web3");
  CHECK(last->label == label);
  CHECK(last->outcome == outcome);
  CHECK(last->reason == reason);
  CHECK(last->ended >= last->begun);
  CHECK(last->begun > at({}));
}

}  // namespace

TEST_CASE("a free row tells who had it last, from when to when, and that it was released") {
  Database database;
  auto engine = database.engine({.node = "web3"});
  auto lock = engine.try_lock("job", {.label = "nightly", .metadata = "gone with it"});
  REQUIRE(lock);
  CHECK_FALSE(last_run(engine));  // it is the one that goes on
  const auto begun = database.admin().acquired_at("job");
  lock->release();
  const auto last = last_run(engine);
  check(last, "nightly", Outcome::released);
  CHECK(last->begun == at(begun));
  CHECK(last->ended == at(database.admin().expires_at("job")));
  const auto listed = engine.list();
  REQUIRE(listed.size() == 1);
  check(listed.front().last_run, "nightly", Outcome::released);
  CHECK(listed.front().label.empty());
  CHECK(listed.front().node.empty());
  CHECK(database.admin().text("SELECT last_label FROM resource_lock_status") == "nightly");
  CHECK(database.admin().text("SELECT last_outcome FROM resource_lock_status") == "released");
  CHECK(database.admin().text("SELECT label FROM resource_lock_status").empty());
  engine.try_lock("job", {.label = "the next"}).reset();
  check(last_run(engine), "the next", Outcome::released);
}

TEST_CASE("a lease that ended without a release has expired at its end, settled or not") {
  Database database;
  auto engine = database.engine({.node = "web3"});
  engine.try_lock("job", {.renew = false, .label = "abandoned"})->detach();
  database.admin().expire("job");
  const auto ended = at(database.admin().expires_at("job"));
  for (const bool settled : {false, true}) {
    if (settled) CHECK(engine.reap().abandoned == 1);
    CHECK(engine.inspect("job")->state == (settled ? State::free : State::expired));
    check(last_run(engine), "abandoned", Outcome::expired);
    CHECK(last_run(engine)->ended == ended);
  }
  engine.try_lock("job", {.label = "the next"}).reset();
  check(last_run(engine), "the next", Outcome::released);
}

TEST_CASE("the last entry of a node whose lease ended within its at-least time has expired, whoever asks meanwhile") {
  Database database;
  auto engine = database.engine({.node = "web3"}), other = database.engine();
  auto entry = engine.try_lock(
      "job",
      {.at_least = 1h, .renew = false, .reentrance = Reentrance::node, .label = "abandoned", .metadata = "page 7"});
  REQUIRE(entry);
  entry->detach();
  database.admin().expire("job");
  const LockOptions reader{.mode = Mode::shared}, permit{.mode = Mode::permits, .limit = 5};
  const LockOptions of_node{.reentrance = Reentrance::node}, writer{};
  for (const auto& asked : {writer, reader, permit, of_node}) {
    CHECK_FALSE(other.try_lock("job", asked));
    const auto row = other.inspect("job");
    CHECK(row->state == State::closed);
    CHECK(row->mode == Mode::node);
    CHECK(row->entries == 0);
    CHECK(row->metadata == "page 7");
    check(row->last_run, "abandoned", Outcome::expired);
  }
  database.admin().age("job", 1h);
  CHECK(engine.reap().abandoned == 1);
  CHECK(engine.inspect("job")->metadata.empty());
  check(last_run(engine), "abandoned", Outcome::expired);
}

TEST_CASE("who takes over what has expired writes over that run") {
  Database database;
  auto engine = database.engine({.node = "web3"});
  engine.try_lock("job", {.renew = false, .label = "abandoned"})->detach();
  database.admin().expire("job");
  auto lock = engine.try_lock("job", {.label = "the next"});
  REQUIRE(lock);
  CHECK_FALSE(last_run(engine));
  lock->release();
  check(last_run(engine), "the next", Outcome::released);
}

TEST_CASE("a release by force is told with its reason, to those who look and to the holder, until the next grant") {
  Database database;
  auto engine = database.engine({.node = "web3"});
  for (const std::string& reason : {std::string("it's stuck \xF0\x9F\x94\x92"), std::string{}, std::string(255, 'x')}) {
    auto lock = engine.try_lock("job", {.renew = false, .label = "stuck"});
    REQUIRE(lock);
    CHECK(engine.force_release("job", lock->token(), reason));
    check(last_run(engine), "stuck", Outcome::forced, reason);
    CHECK(lock->release() == Released::was_lost);
    check(last_run(engine), "stuck", Outcome::forced, reason);
  }
  CHECK(database.admin().text("SELECT last_outcome FROM resource_lock_status") == "forced");
  auto renewed = engine.try_lock("job", renewed_often());
  REQUIRE(renewed);
  CHECK(engine.force_release("job", renewed->token(), "by hand"));
  CHECK(eventually([&] { return renewed->loss().has_value(); }));
  CHECK((renewed->loss() == Loss::forced || renewed->loss() == Loss::refused));  // it knows why for a second
  engine.try_lock("job", {.label = "the next"}).reset();
  check(last_run(engine), "the next", Outcome::released);
  const auto token = database.admin().token("job");
  CHECK(thrown_by([&] { static_cast<void>(engine.force_release("job", token, std::string(256, 'x'))); }).fault ==
        Fault::misuse);
}

TEST_CASE("however a row is given back, it tells of its last run") {
  Database database;
  auto engine = database.engine({.node = "web3", .connections = 1});
  SUBCASE("together with others") {
    constexpr int count = 16;
    std::vector<std::optional<Lock>> locks(count);
    const auto name = [](int i) { return "job " + std::to_string(i); };
    for (int i = 0; i < count; ++i) locks[static_cast<std::size_t>(i)] = engine.try_lock(name(i), {.label = name(i)});
    in_parallel(count, [&](int i) { locks[static_cast<std::size_t>(i)].reset(); });
    for (int i = 0; i < count; ++i) check(last_run(engine, name(i)), name(i), Outcome::released);
  }
  SUBCASE("by the last entry of a node") {
    engine.try_lock("job", {.reentrance = Reentrance::node, .label = "entry"}).reset();
    check(last_run(engine), "entry", Outcome::released);
  }
  SUBCASE("by the last of several readers, or of those who have permits") {
    auto apart = database.engine({.reentrance = Reentrance::none, .node = "web3"});
    for (const auto mode : {Mode::shared, Mode::permits}) {
      LockOptions options{.mode = mode, .limit = mode == Mode::permits ? 2 : 0};
      options.label = "first";
      auto first = apart.try_lock("job", options);
      const auto begun = database.admin().acquired_at("job");
      options.label = "second";
      auto second = apart.try_lock("job", options);
      REQUIRE((first && second));
      second->release();
      CHECK_FALSE(last_run(apart));  // one is there still
      first->release();
      check(last_run(apart), "first", Outcome::released);
      CHECK(last_run(apart)->begun == at(begun));
    }
  }
  SUBCASE("by the end of the last reader's lease, whoever came last") {
    auto apart = database.engine({.reentrance = Reentrance::none, .node = "web3"});
    const auto abandon = [&] {
      apart.try_lock("job", {.mode = Mode::shared, .renew = false, .label = "abandoned"})->detach();
    };
    for (const bool newest_leaves : {false, true}) {
      if (newest_leaves) abandon();
      auto gone = apart.try_lock("job", {.mode = Mode::shared, .label = "gone"});
      REQUIRE(gone);
      if (!newest_leaves) abandon();
      gone->release();
      CHECK(apart.inspect("job")->label == "abandoned");
      database.admin().run("UPDATE resource_lock_holder SET expires_at = acquired_at");
      database.admin().expire("job");
      for (const bool settled : {false, true}) {
        if (settled) CHECK(apart.reap().abandoned == 1);
        check(last_run(apart), "abandoned", Outcome::expired);
      }
    }
  }
  SUBCASE("by the lease that ended last, of several readers") {
    auto apart = database.engine({.reentrance = Reentrance::none, .node = "web3"});
    for (const auto* label : {"longer", "shorter"})
      apart.try_lock("job", {.mode = Mode::shared, .renew = false, .label = label})->detach();
    const auto shorten = [&] {
      database.admin().run("UPDATE resource_lock_holder SET expires_at = 1 WHERE label = 'shorter'");
    };
    shorten();
    CHECK(apart.inspect("job")->label == "longer");  // the only one whose lease lasts
    database.admin().expire("job");
    shorten();
    for (const bool settled : {false, true}) {
      if (settled) CHECK(apart.reap().abandoned == 2);
      check(last_run(apart), "longer", Outcome::expired);
    }
  }
  SUBCASE("by force, of a reader") {
    auto apart = database.engine({.reentrance = Reentrance::none, .node = "web3"});
    auto stuck = apart.try_lock("job", {.mode = Mode::shared, .renew = false, .label = "stuck"});
    REQUIRE(stuck);
    CHECK(apart.force_release("job", stuck->token(), "by hand"));
    check(last_run(apart), "stuck", Outcome::forced, "by hand");
  }
  SUBCASE("by one that gave up not knowing whether it had it") {
    auto lock = engine.try_lock("job", {.renew = false, .label = "given up"});
    REQUIRE(lock);
    const auto owner = lock->owner();
    lock->detach();
    database.table()->withdraw("job", owner, later(BootClock::now(), 1min));
    check(last_run(engine), "given up", Outcome::released);
    database.table()->withdraw("job", std::string(32, 'a'), later(BootClock::now(), 1min));  // who never had it
    check(last_run(engine), "given up", Outcome::released);
  }
}

TEST_CASE("who gave a shared name or a permit back within its at-least time holds nothing, and has released it") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none, .node = "web3", .reaper = {.grace = 1s}});
  for (const auto mode : {Mode::shared, Mode::permits}) {
    CAPTURE(to_string(mode));
    auto lock = engine.try_lock(
        "job", {.mode = mode, .limit = mode == Mode::permits ? 2 : 0, .at_least = 1h, .label = "first"});
    REQUIRE(lock);
    const auto grant = lock->grant();
    CHECK(lock->release() == Released::freed);
    const auto row = engine.inspect("job");
    REQUIRE(row);
    CHECK(row->state == State::closed);
    CHECK(row->left > 50min);
    CHECK(row->entries == 0);
    CHECK(row->owner.empty());
    check(row->last_run, "first", Outcome::released);
    CHECK(row->last_run->ended - row->last_run->begun < 1min);
    CHECK(engine.sharers("job").empty());
    CHECK_FALSE(engine.renew("job", grant, 1h));
    CHECK_FALSE(engine.renew("job", {Token{0}, grant.owner}, 1h));
    // The at-least time is over.
    database.admin().run(
        "UPDATE resource_lock_holder SET reopens_at = acquired_at, expires_at = acquired_at WHERE name = "
        "'job'");
    database.admin().run("UPDATE resource_lock SET expires_at = acquired_at WHERE name = 'job'");
    const auto open = engine.inspect("job");
    REQUIRE(open);
    CHECK(open->state == State::free);
    CHECK(open->left == Duration{});
    check(open->last_run, "first", Outcome::released);
    if (mode == Mode::shared) {
      CHECK(engine.reap().abandoned == 0);
      const auto reaped = engine.inspect("job");
      REQUIRE(reaped);
      CHECK(reaped->state == State::free);
      CHECK(reaped->token == row->token);
      check(reaped->last_run, "first", Outcome::released);
      CHECK(reaped->last_run->ended == open->last_run->ended);
    }
    CHECK(engine.remove("job") == Removal::removed);
  }
}

TEST_CASE("of several who left places the last that went is told, and nobody while one who never went is among them") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none, .node = "web3"});
  const auto share = [&](const char* label) {
    return engine.try_lock("job", {.mode = Mode::shared, .lease = 1h, .at_least = 1h, .label = label});
  };
  auto first = share("first"), second = share("second");
  REQUIRE((first && second));
  CHECK(second->release() == Released::freed);
  CHECK(engine.inspect("job")->state == State::held);
  CHECK(first->release() == Released::freed);
  check(last_run(engine), "first", Outcome::released);
  auto crashed = share("crashed"), third = share("third");
  REQUIRE((crashed && third));
  database.admin().run(
      "UPDATE resource_lock_holder SET expires_at = acquired_at, reopens_at = 0 WHERE label = 'crashed'");
  CHECK(third->release() == Released::freed);
  const auto row = engine.inspect("job");
  CHECK(row->state == State::closed);
  CHECK_FALSE(row->last_run);
  database.admin().run("UPDATE resource_lock SET owner = NULL, mode = '' WHERE name = 'job'");
  crashed->detach();
}

TEST_CASE("the grant that a downgrade begins is told from then on") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none, .node = "web3"});
  auto lock = engine.try_lock("job", {.lease = 1h});
  REQUIRE(lock);
  database.admin().run("UPDATE resource_lock SET acquired_at = acquired_at - 60000000 WHERE name = 'job'");
  lock->downgrade();
  CHECK(engine.inspect("job")->held < 30s);
  CHECK(lock->release() == Released::freed);
}

TEST_CASE("a row that nobody has held tells of no run") {
  Database database;
  auto engine = database.engine();
  database.table()->withdraw("job", std::string(32, 'a'), later(BootClock::now(), 1min));
  REQUIRE(engine.inspect("job"));
  CHECK_FALSE(last_run(engine));
}

TEST_CASE("a release by force of what had expired leaves its end where it was") {
  Database database;
  auto engine = database.engine({.node = "web3"});
  auto lock = engine.try_lock("job", {.renew = false, .label = "abandoned"});
  REQUIRE(lock);
  const auto token = lock->detach().token;
  database.admin().expire("job");
  const auto ended = at(database.admin().expires_at("job"));
  CHECK(engine.force_release("job", token, "cleaned up"));
  check(last_run(engine), "abandoned", Outcome::forced, "cleaned up");
  CHECK(last_run(engine)->ended == ended);
}
