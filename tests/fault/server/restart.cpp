// What becomes of locks when the server dies and comes back.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// One server for the cases of this file: starting one takes seconds.
PrivateServer& mortal() {
  static const auto server = opener().private_server();
  return *server;
}

}  // namespace

TEST_CASE("a server that crashes and comes back remembers every grant, and engines go on with it") {
  const auto test_database = mortal().test_database();
  EventLog news;
  Engine::install_schema(test_database->url());
  Engine engine(test_database->url(), {.reentrance = Reentrance::none,
                                       .timeouts = {.request = 2s * slowness(), .release = 5s * slowness()},
                                       .observer = news.observer()});
  auto kept = engine.try_lock("kept", {.lease = 10min, .renew_every = 100ms});
  auto granted = engine.try_lock("granted a moment before", {.lease = 10min, .renew = false});
  REQUIRE(kept);
  REQUIRE(granted);
  mortal().stop();
  CHECK(news.comes(Event::Kind::retried));
  CHECK(thrown_by([&] { engine.inspect("kept"); }).fault);
  CHECK(kept->valid());
  mortal().start();
  REQUIRE(eventually([&] { return !thrown_by([&] { engine.inspect("kept"); }).fault; }));
  CHECK(engine.inspect("kept")->token == kept->token());
  CHECK(engine.inspect("granted a moment before")->owner == granted->owner());
  CHECK_FALSE(engine.try_lock("kept"));
  CHECK_FALSE(kept->loss());
  CHECK(kept->release() == Released::freed);
  CHECK(granted->release() == Released::freed);
  CHECK(news.comes(Event::Kind::reconnected));
}

TEST_CASE("who shares a name has its place when a server that crashed comes back, and those beside it have theirs") {
  const auto test_database = mortal().test_database();
  Engine::install_schema(test_database->url());
  const auto engine_of = [&] {
    return Engine(test_database->url(), {.reentrance = Reentrance::none,
                                         .timeouts = {.request = 2s * slowness(), .release = 5s * slowness()}});
  };
  Engine engine = engine_of(), other = engine_of();
  struct Shared {
    std::string name;
    LockOptions mine, kept_out;
    std::vector<Lock> locks{};
  };
  LockOptions reader{.mode = Mode::shared, .lease = 10min}, permit{.mode = Mode::permits, .limit = 3, .lease = 10min};
  auto two = permit;
  two.permits = 2;
  std::vector<Shared> all;
  all.push_back({"read", reader, {}});
  all.push_back({"slots", permit, two});
  for (auto& one : all) {
    auto renewed = one.mine;
    renewed.renew_every = 100ms;
    one.locks.push_back(engine.lock(one.name, renewed));
    one.locks.push_back(other.lock(one.name, one.mine));
  }
  mortal().stop();
  CHECK(thrown_by([&] { engine.inspect("read"); }).fault);
  mortal().start();
  for (auto* each : {&engine, &other})
    REQUIRE(eventually([&] { return !thrown_by([&] { each->inspect("read"); }).fault; }));
  for (auto& one : all) {
    INFO(one.name);
    CHECK(engine.sharers(one.name).size() == 2);
    for (const auto& lock : one.locks) {
      CHECK(lock.valid());
      CHECK_FALSE(lock.loss());
    }
    CHECK_FALSE(engine.try_lock(one.name, one.kept_out));
    auto third = other.try_lock(one.name, one.mine);
    REQUIRE(third);
    CHECK(third->token() > one.locks[1].token());
    CHECK(third->release() == Released::freed);
    one.locks[1].extend(20min);
    const auto left = [&] {
      for (const auto& sharer : engine.sharers(one.name))
        if (sharer.owner == one.locks[0].owner()) return sharer.left;
      return Duration{};
    };
    // It is renewed on: its end moves away from the moment at which it was asked for.
    const auto before = left();
    REQUIRE(before > Duration{});
    const Stopwatch time;
    CHECK(eventually([&] {
      const auto asked = time.elapsed();
      return asked > 200ms && left() + asked > before + 200ms;
    }));
    for (auto& lock : one.locks) CHECK(lock.release() == Released::freed);
    CHECK(engine.try_lock(one.name));
  }
}

TEST_CASE("a server that is set to forget is said to be, by the setting's name, and one that is not is not") {
  const auto test_database = mortal().test_database();
  Engine::install_schema(test_database->url());
  const auto told = [&] {
    EventLog news;
    {
      Engine engine(test_database->url(), {.observer = news.observer()});
    }  // its destructor delivers what is to be told
    return news.of(Event::Kind::weak_durability);
  };
  CHECK(told().empty());
  const auto setting = test_database->make_forgetful();
  std::vector<EventLog::Item> warnings;
  REQUIRE(eventually([&] {
    warnings = told();
    return !warnings.empty();
  }));
  CHECK(warnings.size() == 1);
  CHECK_MESSAGE(warnings.front().text.find(setting) != std::string::npos, warnings.front().text);
}
