// Observers come and go while events are told, and none of them delays another.
#include "engine/event_queue.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

using namespace std::chrono_literals;
using dlock::Event;
using dlock::engine::EventQueue;
using dlock::test::eventually;
using dlock::test::slowness;
using Kind = Event::Kind;

namespace {

// Blocks whoever comes in until it is opened.
class Gate {
 public:
  void pass() {
    ++inside_;
    opened_.get_future().wait();
  }
  bool entered() const {
    return eventually([&] { return inside_.load() > 0; });
  }
  void open() { opened_.set_value(); }

 private:
  std::atomic<int> inside_{0};
  std::promise<void> opened_;
};

}  // namespace

TEST_CASE("every observer is told every event, in order, with what the engine says of itself") {
  EventQueue events({}, 5s, {"label of the engine", "node"});
  std::vector<std::string> first, second;  // of the observers' threads
  std::atomic<int> told{0};
  const auto to = [&](std::vector<std::string>& texts) {
    return [&](const Event& event) {
      texts.push_back(std::string(event.name) + "|" + std::string(event.label) + "|" + std::string(event.node) + "|" +
                      std::string(event.job));
      ++told;
    };
  };
  const auto one = events.observe(to(first)), two = events.observe(to(second));
  events.emit(Kind::busy, "a", {}, 1ms, {}, {"label of the lock", "job"});
  events.emit(Kind::timed_out, "b");
  CHECK(eventually([&] { return told.load() == 4; }));
  CHECK(first == std::vector<std::string>{"a|label of the lock|node|job", "b|label of the engine|node|"});
  CHECK(second == first);
}

TEST_CASE("nothing is queued while nobody observes, and all is counted") {
  EventQueue events({});
  CHECK_FALSE(events.observed());
  events.emit(Kind::busy, "n");
  std::atomic<int> told{0};
  {
    const auto observer = events.observe([&](const Event&) { ++told; });
    CHECK(events.observed());
    events.emit(Kind::busy, "n");
    CHECK(eventually([&] { return told.load() == 1; }));
  }
  CHECK_FALSE(events.observed());
  events.emit(Kind::busy, "n");
  CHECK(events.counters().events.read(Kind::busy) == 3);
  CHECK(told.load() == 1);
}

TEST_CASE("an observer that blocks delays no other, and no end of another") {
  Gate gate;
  EventQueue events({});
  const auto blocked = events.observe([&](const Event&) { gate.pass(); });
  std::atomic<int> told{0};
  {
    const auto other = events.observe([&](const Event&) { ++told; });
    for (int i = 0; i < 3; ++i) events.emit(Kind::busy, "n");
    CHECK(gate.entered());
    CHECK(eventually([&] { return told.load() == 3; }));
  }
  gate.open();
}

TEST_CASE("the end of a subscription waits for the call under way, after which there is none") {
  for (int i = 0; i < 50; ++i) {
    EventQueue events({});
    auto alive = std::make_unique<std::atomic<int>>(0);
    std::atomic<bool> begun{false};
    auto observer = events.observe([&, raw = alive.get()](const Event&) {
      begun = true;
      std::this_thread::yield();
      ++*raw;
    });
    std::jthread teller([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) events.emit(Kind::busy, "n");
    });
    CHECK(eventually([&] { return begun.load(); }));
    observer.reset();
    const int told = alive->load();
    for (int n = 0; n < 10; ++n) events.emit(Kind::busy, "n");
    CHECK(alive->load() == told);
    alive.reset();  // whoever still called would write to what is gone
  }
}

TEST_CASE("an observer may end its own subscription, and is destroyed after the call") {
  EventQueue events({});
  auto kept = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = kept;
  std::unique_ptr<EventQueue::Registration> observer;
  std::atomic<int> told{0};
  std::promise<void> there;
  observer = events.observe([&, kept = std::move(kept), ready = there.get_future().share()](const Event&) {
    ready.wait();
    observer.reset();
    CHECK(kept.use_count() == 1);
    ++told;
  });
  there.set_value();
  for (int i = 0; i < 5; ++i) events.emit(Kind::busy, "n");
  CHECK(eventually([&] { return watched.expired(); }));
  CHECK(told.load() == 1);
}

TEST_CASE("what an observer throws is swallowed, and it is told the next event") {
  EventQueue events({});
  std::atomic<int> told{0};
  const auto observer = events.observe([&](const Event&) {
    ++told;
    throw std::runtime_error("planned");
  });
  for (int i = 0; i < 3; ++i) events.emit(Kind::busy, "n");
  CHECK(eventually([&] { return told.load() == 3; }));
}

TEST_CASE("a subscription outlives the queue, which delivers what waits and tells no more") {
  std::atomic<int> told{0};
  std::optional<EventQueue> events(std::in_place, nullptr);
  auto observer = events->observe([&](const Event&) { ++told; });
  for (int i = 0; i < 100; ++i) events->emit(Kind::released, "n");
  events.reset();
  CHECK(told.load() == 100);
  observer.reset();
}

TEST_CASE("a subscription to a queue that has left its blocked observer to itself ends with the call") {
  Gate gate;
  std::optional<EventQueue> events(std::in_place, nullptr, 1ms);
  auto observer = events->observe([&](const Event&) { gate.pass(); });
  events->emit(Kind::busy, "n");
  CHECK(gate.entered());
  events.reset();
  auto ended = std::async(std::launch::async, [&] { observer.reset(); });
  CHECK(ended.wait_for(50ms) == std::future_status::timeout);
  gate.open();
  ended.get();
}

TEST_CASE("an observer may end its subscription after it was left to itself") {
  Gate gate;
  std::optional<EventQueue> events(std::in_place, nullptr, 1ms);
  std::unique_ptr<EventQueue::Registration> observer;
  std::atomic<bool> left{false};
  observer = events->observe([&](const Event&) {
    gate.pass();
    observer.reset();
    left = true;
  });
  events->emit(Kind::busy, "n");
  CHECK(gate.entered());
  events.reset();
  gate.open();
  CHECK(eventually([&] { return left.load(); }));
}

TEST_CASE("where an observer blocks, the oldest passing events are dropped, and counted; no loss is") {
  constexpr int most = 4096, more = 100;
  Gate gate;
  EventQueue events({});
  std::atomic<int> lost{0}, other{0};
  const auto observer = events.observe([&](const Event& event) {
    if (event.text == "first") gate.pass();
    ++(event.kind == Kind::lost ? lost : other);
  });
  events.emit(Kind::busy, "n", {}, {}, "first");
  CHECK(gate.entered());
  events.emit(Kind::lost, "n");
  for (int i = 0; i < most + more; ++i) events.emit(Kind::busy, "n");
  CHECK(events.counters().events_dropped.read() == more + 1);
  gate.open();
  CHECK(eventually([&] { return other.load() == most; }));
  CHECK(lost.load() == 1);
}
