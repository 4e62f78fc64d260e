// The promise that locks and engines end in time when nothing comes through to the database any more,
// and that the reaper outlives that.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/rows.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("with a database that hangs a lock ends within release_timeout, and its engine within request_timeout") {
  ServerDatabase database;
  Proxy proxy(database.server());
  EventLog news;
  const auto release_timeout = 300ms * slowness(), request_timeout = 1500ms * slowness();
  std::optional<Engine> engine;
  engine.emplace(database.server().url_at(proxy.address()),
                 EngineOptions{.connections = 4,
                               .timeouts = {.request = request_timeout, .release = release_timeout},
                               .reaper = {.every = 20ms},
                               .observer = news.observer()});
  std::vector<Lock> locks;
  for (int i = 0; i < 8; ++i) locks.push_back(engine->lock(row_name("job ", i), renewed_often()));
  proxy.black_hole();
  REQUIRE(news.comes(Event::Kind::retried));  // renewals get no answer
  const Stopwatch first;
  locks.pop_back();
  CHECK(first.elapsed() < release_timeout + 2s * slowness());
  const Stopwatch others;
  locks.clear();
  CHECK(others.elapsed() < 7 * release_timeout + 2s * slowness());
  const Stopwatch close;
  engine.reset();
  CHECK(close.elapsed() < request_timeout + 2s * slowness());
  proxy.pass();
  auto other = database->engine();
  for (int i = 0; i < 8; ++i)
    if (!database->admin().owner(row_name("job ", i)).empty()) free_by_force(other, row_name("job ", i));
}

TEST_CASE(
    "with a database that hangs, rows to be taken away and an observer that blocks, one request_timeout is all an "
    "engine takes") {
  ServerDatabase database;
  Proxy proxy(database.server());
  const auto request_timeout = 2s * slowness();
  // Shared: the engine leaves the thread of an observer that blocks behind.
  const auto let_go = std::make_shared<std::atomic<bool>>(false), blocks = std::make_shared<std::atomic<bool>>(false);
  auto other = database->engine();
  auto held = other.lock("job");
  std::optional<Engine> engine;
  engine.emplace(database.server().url_at(proxy.address()),
                 EngineOptions{.timeouts = {.request = request_timeout}, .observer = [let_go, blocks](const Event&) {
                                 *blocks = true;
                                 eventually([&] { return let_go->load(); });
                               }});
  engine->try_lock("mine").reset();
  CHECK(eventually([&] { return blocks->load(); }));
  std::stop_source stop;
  {
    std::jthread waiter(
        [&] { static_cast<void>(engine->try_lock_for("job", 4min, {.fairness = Fairness::fifo}, stop.get_token())); });
    CHECK(eventually([&] { return database->admin().number("SELECT count(*) FROM resource_lock_waiter") == 1; }));
    proxy.black_hole();
    stop.request_stop();
  }
  const Stopwatch close;
  engine.reset();
  CHECK(close.elapsed() < request_timeout + 1s * slowness());
  *let_go = true;
}

TEST_CASE("a reaper goes on after the database was away, was silent, and lost its answers: each report comes once") {
  ServerDatabase database;
  Proxy proxy(database.server());
  constexpr int count = 400;
  add_old_rows(database->admin(), "left ", count, 1, true);
  EventLog news;
  {
    Engine engine(database.server().url_at(proxy.address()),
                  {.connections = 1,
                   .timeouts = {.connect = 1s * slowness(), .request = 1s * slowness()},
                   .reaper = {.every = 10ms, .retention = 1h, .grace = 1h},
                   .observer = news.observer()});
    for (int round = 0; round < 12 && database->admin().held() > 0; ++round) {
      const auto held = database->admin().held();
      const auto requests = proxy.requests();
      if (round % 4 == 0) proxy.cut();
      if (round % 4 == 1) proxy.lose_next_answer();
      if (round % 4 == 2) proxy.refuse();
      if (round % 4 == 3) proxy.black_hole();
      if (round % 4 >= 2)
        CHECK(eventually(
            [&, told = news.of(Event::Kind::retried).size()] { return news.of(Event::Kind::retried).size() > told; }));
      proxy.pass();
      CHECK(eventually([&] { return proxy.requests() > requests + 4 && database->admin().held() <= held; }));
    }
    CHECK(eventually([&] { return database->admin().held() == 0; }));
  }
  std::map<std::string, int> reports;
  for (const auto& item : news.of(Event::Kind::abandoned)) ++reports[item.name];
  CHECK(reports.size() == count);
  for (const auto& [name, times] : reports) CHECK_MESSAGE(times == 1, name);
  CHECK(news.has(Event::Kind::retried));
}

TEST_CASE("a lease is told of although what settles it comes through only after its reaper has looked again") {
  ServerDatabase database;
  Proxy proxy(database.server());
  EventLog news;
  const auto left = row_name("left ", 0), before = row_name("before ", 0);
  {
    Engine engine(database.server().url_at(proxy.address()),
                  {.connections = 1,
                   .timeouts = {.connect = 20s * slowness(), .request = 1s * slowness()},
                   .prepared_statements = false,
                   .observer = news.observer()});
    add_old_rows(database->admin(), "left ", 1, 1, true);
    proxy.hold_next_request_and_refuse("'expired'");
    CHECK(thrown_by([&] { engine.reap(); }).fault);
    REQUIRE(proxy.holds());
    REQUIRE_FALSE(news.has(Event::Kind::abandoned));
    proxy.pass();
    add_old_rows(database->admin(), "before ", 1, 1, true);
    CHECK(eventually([&] { return !thrown_by([&] { engine.reap(1); }).fault; }));
    proxy.let_held_go();
    CHECK(eventually([&] { return proxy.held_was_answered() && database->admin().owner(left).empty(); }));
    CHECK(eventually([&] {
      thrown_by([&] { engine.reap(); });
      return database->admin().held() == 0;
    }));
  }
  std::multiset<std::string> told;
  for (const auto& event : news.of(Event::Kind::abandoned)) told.insert(event.name);
  CHECK(told == std::multiset<std::string>{before, left});
}

TEST_CASE("who died among several is told of although the answer to its removal is lost") {
  ServerDatabase database;
  Proxy proxy(database.server());
  EventLog news;
  auto mortal = database->engine(), other = database->engine();
  auto dies = mortal.lock("job", {.mode = Mode::shared, .lease = 1h, .renew = false, .label = "dies"});
  auto stays = other.lock("job", {.mode = Mode::shared, .lease = 1h, .renew = false});
  database->admin().run("UPDATE resource_lock_holder SET expires_at = acquired_at - 61000000 WHERE owner = '" +
                        std::string(dies.owner()) + "'");
  {
    Engine engine(database.server().url_at(proxy.address()),
                  {.connections = 1,
                   .timeouts = {.connect = 20s * slowness(), .request = 1s * slowness()},
                   .prepared_statements = false,
                   .observer = news.observer()});
    proxy.hold_next_request_and_refuse("DELETE FROM");
    CHECK(thrown_by([&] { engine.reap(); }).fault);
    REQUIRE(proxy.holds());
    proxy.let_held_go();
    CHECK(eventually(
        [&] { return database->admin().number("SELECT count(*) FROM resource_lock_holder WHERE token > 0") == 1; }));
    proxy.pass();
    for (int round = 0; round < 3; ++round) CHECK(eventually([&] { return !thrown_by([&] { engine.reap(); }).fault; }));
  }
  REQUIRE(news.of(Event::Kind::abandoned).size() == 1);
  const auto told = news.of(Event::Kind::abandoned).front();
  CHECK(told.name == "job");
  for (const char* words : {"dies", "the answer was lost"})
    CHECK_MESSAGE(told.text.find(words) != std::string::npos, told.text);
  CHECK(dies.release() == Released::was_lost);
}
