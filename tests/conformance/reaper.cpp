// The promises of the reaper: it works by itself when asked to, one at a time, and tells once.
#include "store/reaper_table.hpp"
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"
#include "support/reports.hpp"
#include "support/rows.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <utility>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

int rows(Admin& admin) { return static_cast<int>(admin.number("SELECT count(*) FROM resource_lock WHERE name <> ''")); }

// As the engine does it: what another has locked just now is asked for again.
template <class Call>
void until_not_locked(Call ask) {
  for (bool asked = false; !asked;) try {
      ask();
      asked = true;
    } catch (const Failure& failure) { REQUIRE(is_conflict(failure.cause())); }
}

}  // namespace

TEST_CASE("an engine that is told to reaps by itself: it settles, removes, and goes on while there is more") {
  Database database;
  add_old_rows(database.admin(), "old ", 2500);
  add_old_rows(database.admin(), "left ", 20, 1, true);
  EventLog news;
  auto engine =
      database.engine({.reaper = {.every = 50ms, .retention = 1h, .grace = 50ms}, .observer = news.observer()});
  const auto held = engine.try_lock("held");
  engine.try_lock("young").reset();
  CHECK(eventually([&] { return rows(database.admin()) == 2; }));
  CHECK(database.admin().owner("held") == held->owner());
  CHECK(database.admin().exists("young"));
  CHECK(eventually([&] { return news.of(Event::Kind::abandoned).size() == 20; }));
  const auto told = news.of(Event::Kind::abandoned).front();
  CHECK(told.name == "left 000000");
  CHECK(told.token == Token{1});
  CHECK_MESSAGE(told.text.find("held by left 000000 (node 1)") != std::string::npos, told.text);
  CHECK(engine.try_lock("left 000019")->token() > Token{20});
  CHECK(engine.try_lock("old 002499")->token() > Token{2500});
}

TEST_CASE("an engine that is not told to does not reap") {
  Database database;
  add_old_rows(database.admin(), "old ", 3);
  auto engine = database.engine({.reaper = {.retention = 1ms, .grace = 1ms}});
  auto other = database.engine({.reaper = {.every = 1h, .retention = 1ms, .grace = 1ms}});
  for (int i = 0; i < 50; ++i) engine.try_lock("job").reset();
  CHECK(rows(database.admin()) == 4);
}

TEST_CASE("an interval that makes no sense is refused by name") {
  Database database;
  for (const Duration interval : {Duration{-1}, Duration{1}}) {
    const auto thrown = thrown_by([&] { database.engine({.reaper = {.every = interval}}); });
    CHECK(thrown.fault == Fault::misuse);
    CHECK_MESSAGE((thrown.names("EngineOptions::reaper.every") && thrown.names(std::to_string(interval.count()))),
                  thrown.text);
  }
}

TEST_CASE("of all engines that reap by themselves one does in an interval, and each can go on where another stopped") {
  Database database;
  constexpr auto interval = 400ms;
  std::vector<Engine> engines;
  for (int i = 0; i < 6; ++i)
    engines.push_back(database.engine({.reaper = {.every = interval, .retention = 1h, .grace = 100ms}}));
  // A turn writes the floor row; how often, its closed time tells.
  std::vector<Duration> turns{database.admin().reopens_at("")};
  const Stopwatch time;
  while (turns.size() < 6) {
    REQUIRE(time.elapsed() < far_longer());
    if (const auto next = database.admin().reopens_at(""); next != turns.back()) turns.push_back(next);
  }
  for (std::size_t i = 2; i < turns.size(); ++i) CHECK(turns[i] - turns[i - 1] >= interval / 4 * 3);
  add_old_rows(database.admin(), "old ", 10);
  CHECK(eventually([&] { return rows(database.admin()) == 0; }));
}

TEST_CASE("a reaper that died in its turn keeps the others waiting for seconds, not for ever") {
  Database database;
  const auto table = database.table();
  add_old_rows(database.admin(), "left ", 1, 1, true);
  auto engine = database.engine();
  const auto soon = [] { return later(BootClock::now(), 1min); };
  REQUIRE(table->reaping().begin_reaping("dead", "a dead one", 15s, {}, soon()));
  CHECK(table->reaping().begin_reaping("dead", "a dead one", 15s, {}, soon()));  // asked again, as after a lost answer
  const auto reaped = engine.reap();
  CHECK(reaped.elsewhere);
  CHECK(reaped.abandoned == 0);
  CHECK(database.admin().expires_at("") > Duration{});
  database.admin().run("UPDATE resource_lock SET expires_at = 1 WHERE name = ''");  // its time is over
  CHECK(engine.reap().abandoned == 1);
  // A clock that was stepped back by days since leaves times that nobody has to wait for.
  REQUIRE(table->reaping().begin_reaping("dead", "a dead one", 15s, {}, soon()));
  database.admin().run("UPDATE resource_lock SET expires_at = expires_at + 86400000000 WHERE name = ''");
  CHECK_FALSE(engine.reap().elsewhere);
}

TEST_CASE("a turn, or a pause after it, that began a little after the asker's statement binds the asker") {
  Database database;
  const auto table = database.table();
  const auto soon = [] { return later(BootClock::now(), 1min); };
  const auto asked = [&] { return table->reaping().begin_reaping("late", "a late one", 15s, 1h, soon()); };
  // Its statement may have waited for the commit of one that began later: by its own now, these times are too far off.
  REQUIRE(table->reaping().begin_reaping("other", "another", 20s, {}, soon()));
  CHECK_FALSE(asked());
  table->reaping().end_reaping("other", 1h + 5s, soon());
  CHECK_FALSE(asked());
  table->reaping().end_reaping("late", {}, soon());
  CHECK_FALSE(asked());
  CHECK(table->reaping().begin_reaping("called", "one that was asked for", 15s, {}, soon()));  // no pause binds that
}

TEST_CASE("who settles a lease, and who removes a row, is decided once however many try") {
  Database database;
  constexpr int count = 60, reapers = 6;
  add_old_rows(database.admin(), "left ", count, 1, true);
  add_old_rows(database.admin(), "old ", count);
  std::vector<std::unique_ptr<store::LockTable>> tables;
  for (int i = 0; i < reapers; ++i) tables.push_back(database.table());
  std::atomic<int> settled{0}, signed_by{0};
  std::atomic<std::size_t> removed{0};
  in_parallel(reapers, [&](int i) {
    auto& table = tables[static_cast<std::size_t>(i)]->reaping();
    const auto soon = [] { return later(BootClock::now(), 1min); };
    const auto settler = "reaper " + std::to_string(i);
    for (int row = 0; row < count; ++row) {
      const Token token{1 + row};
      until_not_locked([&] { settled += table.settle(row_name("left ", row), token, settler, soon()) ? 1 : 0; });
      signed_by += table.settled(row_name("left ", row), token, settler, soon()) == store::Settled::by_asker ? 1 : 0;
    }
    // The floor row is one for all.
    until_not_locked([&] { table.raise_floor(1h, soon()); });
    const auto idle = table.idle({"old ", "", 1000}, Token{count}, 1h, soon());
    until_not_locked([&] { removed += table.remove_idle(idle, soon()); });
  });
  CHECK(settled == count);
  CHECK(signed_by == count);
  CHECK(removed <= count);
  const auto table = database.table();
  const auto soon = later(BootClock::now(), 1min);
  auto& reaping = table->reaping();
  removed += reaping.remove_idle(reaping.idle({"old ", "", 1000}, Token{count}, 1h, soon), soon);  // what was skipped
  CHECK(removed == count);
}

TEST_CASE("what an idle row was when it was seen decides: used meanwhile, it stays") {
  Database database;
  add_old_rows(database.admin(), "old ", 3);
  const auto table = database.table();
  auto engine = database.engine();
  const auto soon = later(BootClock::now(), 1min);
  table->reaping().raise_floor(1h, soon);
  const auto idle = table->reaping().idle({"old ", "", 1000}, Token{100}, 1h, soon);
  REQUIRE(idle.size() == 3);
  CHECK(table->reaping().idle({"old ", "old 000000", 1}, Token{100}, 1h, soon).front().name == "old 000001");
  CHECK(table->reaping().idle({"old ", "", 1000}, Token{1}, 1h, soon).size() == 1);
  const auto held = engine.try_lock("old 000000");
  engine.try_lock("old 000001").reset();
  database.admin().run("UPDATE resource_lock SET token = 1000 WHERE name = ''");  // above theirs: no floor keeps them
  CHECK(table->reaping().remove_idle(idle, soon) == 1);
  CHECK(table->reaping().remove_idle(idle, soon) == 0);
  CHECK(database.admin().owner("old 000000") == held->owner());
  CHECK(database.admin().exists("old 000001"));
}

TEST_CASE("what is removed goes by the floor that is there, whoever remembers a higher one") {
  Database database;
  add_old_rows(database.admin(), "old ", 3, 5);
  const auto table = database.table();
  const auto soon = later(BootClock::now(), 10s);
  REQUIRE(table->reaping().raise_floor(1h, soon) == Token{7});
  const auto idle = table->reaping().idle({"old ", "", 1000}, Token{7}, 1h, soon);
  REQUIRE(idle.size() == 3);
  database.admin().run("UPDATE resource_lock SET token = 5 WHERE name = ''");
  CHECK(table->reaping().remove_idle(idle, soon) == 1);
  CHECK_FALSE(database.admin().exists("old 000000"));
  database.admin().run("UPDATE resource_lock SET token = 0 WHERE name = ''");
  CHECK(table->reaping().remove_idle(idle, soon) == 0);
}

TEST_CASE("a floor that a restore took back is raised and waited for again, so that no token falls") {
  Database database;
  auto engine = database.engine({.reaper = {.retention = 50ms, .grace = 50ms}});
  auto& admin = database.admin();
  for (int i = 0; i < 20; ++i) engine.try_lock("job").reset();
  admin.make_idle_for_days("job");
  const auto last = admin.token("job");
  REQUIRE(last == Token{20});
  engine.reap();
  REQUIRE(admin.floor() == last);
  std::this_thread::sleep_for(100ms);  // past the grace: what was seen of the floor would do now
  admin.run("UPDATE resource_lock SET token = 0 WHERE name = ''");
  const auto first = engine.reap();
  CHECK(first.removed == 0);
  REQUIRE(admin.exists("job"));
  CHECK(admin.floor() == last);
  // The floor that is seen now has not been there for the grace.
  auto patient = database.engine({.reaper = {.retention = 1h, .grace = 1h}});
  patient.reap();
  admin.run("UPDATE resource_lock SET token = 0 WHERE name = ''");
  CHECK(patient.reap().removed == 0);
  CHECK(patient.reap().removed == 0);
  CHECK(eventually([&] { return engine.reap().removed == 1; }));
  CHECK(engine.try_lock("job")->token() > last);
}

TEST_CASE("a pass of the reaper removes nothing above a floor that was taken back while it waited out the grace") {
  Database database;
  add_old_rows(database.admin(), "old ", 5, 10);
  auto engine = database.engine({.reaper = {.retention = 1h, .grace = 200ms}});
  bool taken_back = false;
  const auto reaped = engine.reap_all({.progress = [&](const ReapProgress& now) {
    if (now.phase != ReapProgress::Phase::grace || std::exchange(taken_back, true)) return;
    Admin(database.test_database()).run("UPDATE resource_lock SET token = 0 WHERE name = ''");
  }});
  CHECK(taken_back);
  CHECK(reaped.removed == 0);
  CHECK(rows(database.admin()) == 5);
}

TEST_CASE("the reaper opens nothing that is closed") {
  Database database;
  auto& admin = database.admin();
  auto engine = database.engine({.reaper = {.retention = 50ms, .grace = 50ms}});
  engine.try_lock("free", {.at_least = 240h}).reset();
  admin.make_idle_for_days("free");  // and closed for some more
  auto gone = engine.try_lock("gone", {.at_least = 240h, .renew = false});
  REQUIRE(gone);
  gone->detach();
  admin.expire("gone");
  std::size_t settled = 0;
  // What is idle and open goes, once and again: so would what is idle and closed, if it was found.
  for (int i = 0; i < 3; ++i) {
    engine.try_lock("idle").reset();
    admin.make_idle_for_days("idle");
    CHECK(eventually([&] {
      settled += engine.reap().abandoned;
      return !admin.exists("idle");
    }));
  }
  CHECK(settled == 1);
  CHECK(admin.owner("gone").empty());
  CHECK(admin.exists("free"));
  CHECK_FALSE(engine.try_lock("free"));
  CHECK_FALSE(engine.try_lock("gone"));
}

TEST_CASE("a lease that was renewed since it was listed as abandoned is not settled") {
  Database database;
  const auto table = database.table();
  auto engine = database.engine();
  const auto soon = [] { return later(BootClock::now(), 1min); };
  auto lock = engine.try_lock("job", {.lease = 1h, .renew = false});
  REQUIRE(lock);
  database.admin().expire("job");
  const auto listed = table->reaping().abandoned({"", "", 10}, soon());
  REQUIRE(listed.size() == 1);
  lock->extend(1h);
  CHECK_FALSE(table->reaping().settle("job", listed.front().token, "a reaper", soon()));
  CHECK(database.admin().owner("job") == lock->owner());
  CHECK(database.admin().token("job") == lock->token());
  CHECK(lock->release() == Released::freed);
}

TEST_CASE(
    "who settled a lease is known until the name is granted again, and by whom not, where somebody withdrew since") {
  Database database;
  const auto table = database.table();
  auto& reaping = table->reaping();
  const auto soon = [] { return later(BootClock::now(), 1min); };
  add_old_rows(database.admin(), "left ", 1, 7, true);
  const auto left = row_name("left ", 0);
  const auto settled_by = [&](std::string_view settler) { return reaping.settled(left, Token{7}, settler, soon()); };
  CHECK(settled_by("one") == store::Settled::still_held);
  REQUIRE(reaping.settle(left, Token{7}, "one", soon()));
  CHECK(settled_by("one") == store::Settled::by_asker);
  CHECK(settled_by("another") == store::Settled::unclear);
  table->withdraw(left, std::string(32, 'a'), soon());
  CHECK(settled_by("one") == store::Settled::unclear);
  auto engine = database.engine();
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  const auto token = lock->token();
  CHECK(lock->release() == Released::freed);
  CHECK(reaping.settled("job", token, "one", soon()) == store::Settled::not_by_asker);
  CHECK(reaping.settled("none", token, "one", soon()) == store::Settled::unclear);
}

TEST_CASE("the dead are listed page by page, each once, also those of one name") {
  Database database;
  const auto table = database.table();
  auto& reaping = table->reaping();
  const auto soon = [] { return later(BootClock::now(), 1min); };
  const std::vector<std::string> names{"job", "job/1", "Job", "jo", "\xc3\xa4"};
  std::set<std::pair<std::string, std::string>> all;
  for (const auto& name : names)
    for (const int owner : {1, 2, 3, 4, 5}) {
      all.insert({name, identity(owner)});
      database.admin().run(
          "INSERT INTO resource_lock_holder (name, owner, gate, node, token, mode, expires_at) VALUES ('" + name +
          "', '" + identity(owner) + "', '" + identity(9) + "', 'node', 1, 'shared', 1)");
    }
  for (const std::string prefix : {"", "job", "job/"}) {
    for (const std::size_t limit : {2, 5, 100}) {
      CAPTURE(prefix);
      CAPTURE(limit);
      std::vector<std::pair<std::string, std::string>> found;
      for (std::size_t last = limit; last == limit;) {
        const auto after = found.empty() ? std::pair<std::string, std::string>{} : found.back();
        const auto page = reaping.dead_holders({prefix, after.first, limit}, after.second, soon());
        last = page.size();
        for (const auto& one : page) found.emplace_back(one.lease.name, one.owner);
        REQUIRE(found.size() <= all.size());
      }
      std::set<std::pair<std::string, std::string>> expected;
      for (const auto& one : all)
        if (one.first.starts_with(prefix)) expected.insert(one);
      CHECK(std::set(found.begin(), found.end()) == expected);
      CHECK(found.size() == expected.size());
    }
  }
  std::vector<std::string> owners;
  for (std::size_t last = 2; last == 2;) {
    const auto page = reaping.dead_holders_of("job", owners.empty() ? "" : owners.back(), 2, soon());
    last = page.size();
    for (const auto& one : page) owners.push_back(one.owner);
    REQUIRE(owners.size() <= 5);
  }
  CHECK(owners.size() == 5);
  CHECK(database.engine().reap().abandoned == 25);
}

TEST_CASE("who shares a name and was renewed since it was seen dead is not forgotten, and not told of") {
  Database database;
  const auto table = database.table();
  auto& reaping = table->reaping();
  const auto soon = [] { return later(BootClock::now(), 1min); };
  auto engine = database.engine();
  auto lock = engine.try_lock("job", {.mode = Mode::shared, .lease = 1h, .renew = false});
  REQUIRE(lock);
  database.admin().run("UPDATE resource_lock_holder SET expires_at = acquired_at - 61000000");
  const auto dead = reaping.dead_holders({}, "", soon());
  REQUIRE(dead.size() == 1);
  CHECK(dead.front().abandoned);
  lock->extend(1h);
  CHECK_FALSE(reaping.forget_holder(dead.front(), soon()));
  CHECK(reaping.has_holder(dead.front(), soon()));
  CHECK(reaping.dead_holders({}, "", soon()).empty());
  CHECK(engine.reap().abandoned == 0);
  CHECK(lock->release() == Released::freed);
  CHECK_FALSE(reaping.has_holder(dead.front(), soon()));
}

TEST_CASE("an engine with a reaper closes at once") {
  Database database;
  add_old_rows(database.admin(), "old ", 3000);
  for (const auto interval : {1ms, 20ms, 3600000ms}) {
    auto engine = std::make_optional(database.engine({.reaper = {.every = interval, .retention = 1h, .grace = 1ms}}));
    engine->try_lock("job").reset();
    const Stopwatch time;
    engine.reset();
    CHECK(time.elapsed() < 2s * slowness());
  }
}

TEST_CASE("a pass of the reaper does all of it: only what matches, not more than asked, and nothing when it is dry") {
  Database database;
  add_old_rows(database.admin(), "a/", 5);
  add_old_rows(database.admin(), "b/", 5);
  add_old_rows(database.admin(), "left/", 2, 1, true);
  auto engine = database.engine({.reaper = {.retention = 1h, .grace = 100ms}});
  const auto dry = engine.reap_all({.dry_run = true});
  CHECK(dry.removed == 10);
  CHECK(dry.abandoned == 2);
  CHECK(engine.reap_all({.glob = "a/*[23]", .dry_run = true}).removed == 2);
  CHECK(rows(database.admin()) == 12);
  CHECK(database.admin().floor() == Token{0});
  const Stopwatch time;
  CHECK(engine.reap_all({.glob = "a/*[23]"}).removed == 2);
  CHECK(time.elapsed() >= 100ms);
  CHECK_FALSE(database.admin().exists("a/000003"));
  CHECK(engine.reap_all({.limit = 4}).removed == 4);
  std::vector<ReapProgress::Phase> phases;
  const auto rest = engine.reap_all({.progress = [&](const ReapProgress& now) { phases.push_back(now.phase); }});
  CHECK(rest.removed == 6);
  CHECK(rows(database.admin()) == 0);
  CHECK(std::count(phases.begin(), phases.end(), ReapProgress::Phase::grace) > 0);
  CHECK(phases.back() == ReapProgress::Phase::removing);
  CHECK(engine.try_lock("a/000003")->token() > Token{5});
  CHECK(thrown_by([&] { engine.reap_all({.limit = 0}); }).fault == Fault::misuse);
}

TEST_CASE("a pass that is stopped while it waits out the grace ends at once, and has removed nothing") {
  Database database;
  add_old_rows(database.admin(), "old ", 5);
  auto engine = database.engine({.reaper = {.retention = 2h, .grace = 1h}});
  std::stop_source stop;
  const Stopwatch time;
  const auto reaped = engine.reap_all({.progress =
                                           [&](const ReapProgress& now) {
                                             if (now.phase == ReapProgress::Phase::grace) stop.request_stop();
                                           }},
                                      stop.get_token());
  CHECK(reaped.removed == 0);
  CHECK(time.elapsed() < 5s * slowness());
  CHECK(rows(database.admin()) == 5);
}
