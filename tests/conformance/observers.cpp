// Any number of observers come and go while an engine is at work, and none delays another, nor the engine.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("every observer hears what happens while it is subscribed, beside the engine's own") {
  Database database;
  EventLog always, first, second;
  auto engine = database.engine({.observer = always.observer()});
  engine.try_lock("before").reset();
  auto one = engine.observe(first.observer());
  {
    const auto two = engine.observe(second.observer());
    engine.try_lock("both").reset();
    CHECK(second.comes(Event::Kind::released));
  }
  engine.try_lock("after").reset();
  CHECK(eventually([&] { return first.of(Event::Kind::released).size() == 2; }));
  CHECK(eventually([&] { return always.of(Event::Kind::released).size() == 3; }));
  CHECK(second.of(Event::Kind::granted).size() == 1);
  CHECK(second.of(Event::Kind::granted).at(0).name == "both");
  CHECK(first.of(Event::Kind::granted).at(0).name == "both");
}

TEST_CASE("a subscription that ends while events come is called no more, from then on") {
  Database database;
  auto engine = database.engine();
  std::jthread worker([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) engine.try_lock("job").reset();
  });
  for (int i = 0; i < 20; ++i) {
    auto calls = std::make_unique<std::atomic<int>>(0);
    auto observer = engine.observe([raw = calls.get()](const Event&) { ++*raw; });
    CHECK(eventually([&] { return calls->load() > 0; }));
    observer.unsubscribe();
    calls.reset();  // whoever still called would write to what is gone
  }
}

TEST_CASE("an observer that throws, one that blocks and one that ends its own subscription disturb nobody") {
  Database database;
  EventLog news;
  auto engine = database.engine();
  std::atomic<bool> open{false};
  std::atomic<int> thrown{0}, once{0};
  const auto throwing = engine.observe([&](const Event&) {
    ++thrown;
    throw std::runtime_error("planned");
  });
  const auto blocking = engine.observe([&](const Event&) { eventually([&] { return open.load(); }, 120s); });
  Subscription itself;
  std::atomic<bool> there{false};
  itself = engine.observe([&](const Event&) {
    eventually([&] { return there.load(); });
    itself.unsubscribe();
    ++once;
  });
  there = true;
  const auto hearing = engine.observe(news.observer());
  for (int i = 0; i < 3; ++i) engine.try_lock("job").reset();
  CHECK(eventually([&] { return news.of(Event::Kind::released).size() == 3; }));
  CHECK(eventually([&] { return thrown.load() == 6; }));
  CHECK(eventually([&] { return once.load() == 1; }));
  open = true;
}

TEST_CASE("after an observer has ended its own subscription, the end of that still waits for the call") {
  Database database;
  auto engine = database.engine();
  auto subscription = std::make_unique<Subscription>();
  std::atomic<bool> there{false}, ended{false}, open{false}, returns{false};
  *subscription = engine.observe([&](const Event&) {
    eventually([&] { return there.load(); });
    subscription->unsubscribe();
    ended = true;
    eventually([&] { return open.load(); });
    returns = true;
  });
  there = true;
  engine.try_lock("job").reset();
  REQUIRE(eventually([&] { return ended.load(); }));
  auto end = std::async(std::launch::async, [&] {
    subscription.reset();
    return returns.load();
  });
  CHECK(end.wait_for(50ms) == std::future_status::timeout);
  open = true;
  CHECK(end.get());
}

TEST_CASE("a subscription outlives its engine, keeps nothing of it alive, and hears what was told before the end") {
  Database database;
  EventLog news;
  std::optional<Engine> engine(database.engine());
  auto observer = engine->observe(news.observer());
  engine->try_lock("job").reset();
  engine.reset();
  CHECK(news.of(Event::Kind::granted).size() == 1);
  CHECK(news.of(Event::Kind::released).size() == 1);
  auto moved = std::move(observer);
  moved.unsubscribe();
  moved.unsubscribe();
}

TEST_CASE("an observer may ask its engine for locks and statistics, and subscribe another one") {
  Database database;
  EventLog news;
  auto engine = database.engine();
  std::atomic<int> told{0};
  std::mutex mutex;
  Subscription inner;
  const auto outer = engine.observe([&](const Event& event) {
    if (event.name != "job" || event.kind != Event::Kind::granted) return;
    {
      const std::lock_guard guard(mutex);
      inner = engine.observe(news.observer());
    }
    engine.try_lock("from within").reset();
    told = static_cast<int>(engine.stats().granted());
  });
  engine.try_lock("job").reset();
  CHECK(eventually([&] { return told.load() == 2; }));
  CHECK(news.comes(Event::Kind::granted));
  const std::lock_guard guard(mutex);
  inner.unsubscribe();
}

TEST_CASE("an engine may end inside an observer's call, which then ends its own subscription") {
  Database database;
  auto engine = std::make_unique<Engine>(database.engine());
  auto subscription = std::make_unique<Subscription>();
  std::atomic<bool> there{false}, over{false};
  *subscription = engine->observe([&](const Event&) {
    eventually([&] { return there.load(); });
    engine.reset();
    subscription.reset();
    over = true;
  });
  engine->try_lock("job").reset();
  there = true;
  CHECK(eventually([&] { return over.load(); }));
}
