// The promise that an asynchronous call is answered in time whatever the server does, and that what was granted behind
// its back is given back.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/loop.hpp"
#include "support/proxy.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// What an answer may take beyond its time on a crowded machine.
std::chrono::milliseconds late() { return 2s * slowness(); }

struct Silent {
  ServerDatabase database{};
  Proxy proxy{database.server()};
  Loop loop{};
  Engine engine{database.server().url_at(proxy.address()),
                {.timeouts = {.request = 20s * slowness(), .release = 400ms}, .executor = loop.executor()}};

  void warm() {
    // Until its connection is idle: it has answered.
    REQUIRE(eventually([&] {
      std::optional<Released> end;
      engine.async_lock("warm", {}, [&](Result<Lock> result) { end = std::move(*result).release(); });
      REQUIRE(loop.run_until([&] { return end.has_value(); }));
      return end == Released::freed;
    }));
  }
};

}  // namespace

TEST_CASE("asynchronous waits end in time while the server is silent, those that were not sent yet as well") {
  Silent silent;
  silent.warm();
  silent.proxy.black_hole();
  int answered = 0, granted = 0;
  const Stopwatch watch;
  for (int i = 0; i < 40; ++i)
    silent.engine.async_try_lock_for("job/" + std::to_string(i % 20), 200ms, {}, [&](Result<Lock> result) {
      ++answered;
      granted += result ? 1 : 0;
    });
  CHECK(silent.loop.run_until([&] { return answered == 40; }));
  CHECK(watch.elapsed() >= 200ms);
  CHECK(watch.elapsed() < 200ms + late());
  CHECK(granted == 0);
  silent.proxy.pass();
  CHECK(eventually([&] { return silent.database->admin().held() == 0; }));  // what was granted and not heard
}

TEST_CASE("a row that another transaction has locked holds up no other asynchronous release") {
  ServerDatabase database;
  Loop loop;
  auto engine = database->engine(
      {.reentrance = Reentrance::none, .timeouts = {.release = 20s * slowness()}, .executor = loop.executor()});
  Caller caller(database->test_database());
  std::vector<Lock> locks;
  for (int i = 0; i < 40; ++i) locks.push_back(engine.lock("job/" + std::to_string(i)));
  caller.begin(database->test_database().beginnings().front());
  locks[7].fence(caller.native());
  int freed = 0;
  std::optional<Released> locked;
  const Stopwatch watch;
  for (int i = 0; i < 40; ++i)
    engine.async_release(std::move(locks[static_cast<std::size_t>(i)]), [&, i](Released end) {
      if (i == 7) locked = end;
      else freed += end == Released::freed ? 1 : 0;
    });
  CHECK(loop.run_until([&] { return freed == 39; }));
  CHECK(watch.elapsed() < 20s * slowness());
  CHECK_FALSE(locked);
  caller.run("COMMIT");
  CHECK(loop.run_until([&] { return locked.has_value(); }));
  CHECK(locked == Released::freed);
}

TEST_CASE("each of many asynchronous releases is told in its own time while the server is silent") {
  ServerDatabase database;
  Proxy proxy(database.server());
  Loop loop;
  Engine engine(database.server().url_at(proxy.address()), {.reentrance = Reentrance::none,
                                                            .timeouts = {.release = 400ms * slowness()},
                                                            .combine = 5,
                                                            .executor = loop.executor()});
  std::vector<Lock> locks;
  for (int i = 0; i < 100; ++i) locks.push_back(engine.lock("job/" + std::to_string(i)));
  proxy.black_hole();
  int told = 0;
  const Stopwatch watch;
  for (auto& lock : locks)
    engine.async_release(std::move(lock), [&](Released end) { told += end == Released::unconfirmed ? 1 : 0; });
  CHECK(loop.run_until([&] { return told == 100; }));
  CHECK(watch.elapsed() < 400ms * slowness() + late());
  proxy.cut();
  proxy.pass();
  CHECK(eventually([&] { return database->admin().held() == 0; }));
}

TEST_CASE("an asynchronous release of a row that was locked does not wait for those before it that still are") {
  ServerDatabase database;
  Loop loop;
  auto engine = database->engine(
      {.reentrance = Reentrance::none, .timeouts = {.release = 10s * slowness()}, .executor = loop.executor()});
  std::deque<Caller> callers;
  std::vector<Lock> locks;
  for (int i = 0; i < 5; ++i) {
    locks.push_back(engine.lock("job/" + std::to_string(i)));
    auto& caller = callers.emplace_back(database->test_database());
    caller.begin(database->test_database().beginnings().front());
    locks.back().fence(caller.native());
  }
  int told = 0;
  std::optional<Released> last;
  const Stopwatch watch;
  for (auto& lock : locks)
    engine.async_release(std::move(lock), [&, is_last = &lock == &locks.back()](Released end) {
      ++told;
      if (is_last) last = end;
    });
  loop.run();
  callers.back().run("COMMIT");
  CHECK(loop.run_until([&] { return last.has_value(); }));
  CHECK(watch.elapsed() < 10s * slowness());
  CHECK(last == Released::freed);
  CHECK(told == 1);
  for (int i = 0; i < 4; ++i) callers[static_cast<std::size_t>(i)].run("COMMIT");
  CHECK(loop.run_until([&] { return told == 5; }));
}

TEST_CASE("the end of the engine tells of releases that hang, and the executor is not called after it") {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  for (int round = 0; round < 5; ++round) {  // a last statement may end just before the engine, or just after it
    ServerDatabase database;
    Proxy proxy(database.server());
    std::atomic<int> told = 0, late_calls = 0;
    std::atomic<bool> over = false;
    const auto before = threads();
    {
      EngineOptions options{.reentrance = Reentrance::none,
                            .timeouts = {.request = 500ms * slowness(), .release = 20s * slowness()}};
      options.executor = [&](const std::function<void()>& handler) {
        if (over) ++late_calls;
        handler();
      };
      Engine engine(database.server().url_at(proxy.address()), options);
      std::vector<Lock> locks;
      for (int i = 0; i < 10; ++i) locks.push_back(engine.lock("job/" + std::to_string(i)));
      proxy.black_hole();
      for (auto& lock : locks) engine.async_release(std::move(lock), [&](Released) { ++told; });
    }
    over = true;
    CHECK(told.load() == 10);
    proxy.cut();
    proxy.pass();
    CHECK(eventually([&] { return threads() <= before; }));
    CHECK(late_calls.load() == 0);
    for (int i = 0; i < 10; ++i) database->admin().expire("job/" + std::to_string(i));  // what nobody could give back
  }
}

TEST_CASE("a stop answers an asynchronous call while its statement hangs, and what that was granted is given back") {
  Silent silent;
  silent.warm();
  silent.proxy.swallow_answers();
  std::stop_source stop;
  std::optional<Result<Lock>> answer;
  silent.engine.async_lock("job", {}, stop.get_token(),
                           [&](Result<Lock> result) { answer.emplace(std::move(result)); });
  CHECK(eventually([&] { return !silent.database->admin().owner("job").empty(); }));
  CHECK(silent.loop.run() == 0);
  const Stopwatch watch;
  stop.request_stop();
  REQUIRE(silent.loop.run_until([&] { return answer.has_value(); }));
  CHECK(watch.elapsed() < late());
  CHECK(answer->refused() == Refused::stopped);
  silent.proxy.cut();
  silent.proxy.pass();
  CHECK(eventually([&] { return silent.database->admin().owner("job").empty(); }));
}

TEST_CASE("the engine ends in bounded time while asynchronous calls hang, and each of them is answered") {
  ServerDatabase database;
  auto other = database->engine();
  Proxy proxy(database.server());
  Loop loop;
  int answered = 0;
  std::optional<Engine> engine(std::in_place, database.server().url_at(proxy.address()),
                               EngineOptions{.timeouts = {.request = 1s * slowness()}, .executor = loop.executor()});
  proxy.swallow_answers();
  const auto before = proxy.requests();
  for (int i = 0; i < 10; ++i)
    engine->async_lock("job/" + std::to_string(i), {}, [&](Result<Lock> result) {
      CHECK(result.error() != nullptr);
      ++answered;
    });
  CHECK(eventually([&] { return proxy.requests() > before; }));
  const Stopwatch watch;
  engine.reset();
  CHECK(watch.elapsed() < 1s * slowness() + late());
  loop.run();
  CHECK(answered == 10);
  proxy.cut();
  proxy.pass();
  // What was granted to an engine that is gone ends with its lease; here somebody else ends it.
  CHECK(eventually([&] {
    const auto rows = other.list("job/*");
    for (const auto& row : rows)
      if (row.state == State::held) static_cast<void>(other.force_release(row.name, row.token));
    return database->admin().held() == 0;
  }));
}
