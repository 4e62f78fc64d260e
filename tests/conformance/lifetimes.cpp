// The promise that engines and locks may end in any order, anywhere, and leave nothing behind.
#include "support/caller.hpp"
#include "support/child.hpp"
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// Waits until nothing runs in this process but what did before.
bool back_to(std::size_t threads) {
  return eventually([&] { return count_threads() <= threads; });
}

// A flag that holds somebody up until it is opened, and knows that somebody is held up.
class Gate {
 public:
  void wait() {
    reached_ = true;
    eventually([&] { return open_.load(); }, 60s);
  }
  bool reached() const {
    return eventually([&] { return reached_.load(); });
  }
  void open() { open_ = true; }

 private:
  std::atomic<bool> reached_{false}, open_{false};
};

}  // namespace

TEST_CASE(
    "an engine may end before its locks: they are renewed, extended, released, and the threads end with the last") {
  Database database;
  const auto threads = count_threads();
  std::vector<Lock> locks;
  {
    auto engine = database.engine({.reaper = {.every = 20ms}});
    for (const char* name : {"a", "b", "c"}) locks.push_back(engine.lock(name, renewed_often()));
  }
  const auto begun = database.admin().expires_at("a");
  CHECK(eventually([&] { return database.admin().expires_at("a") > begun + 300ms; }));  // a few renewals
  for (const auto& lock : locks) CHECK(lock.valid());
  locks.back().extend(1h);
  CHECK(locks.back().release() == Released::freed);
  locks.pop_back();
  locks.erase(locks.begin());
  CHECK(database.admin().owner("a").empty());
  CHECK(locks.back().valid());
  locks.clear();
  CHECK(back_to(threads));
}

TEST_CASE("the last lock may end inside what is registered on its loss, and the engine with it") {
  Database database;
  const auto threads = count_threads();
  auto other = database.engine();
  std::optional<Lock> lock;
  {
    auto engine = database.engine();
    lock = engine.try_lock("job", renewed_often());
  }
  REQUIRE(lock);
  const auto token = lock->token();
  std::atomic<bool> ended{false};
  const auto lost = lock->lost();
  {
    const std::stop_callback callback(lost, [&] {
      lock.reset();
      ended = true;
    });
    CHECK(other.force_release("job", token));
    CHECK(eventually([&] { return ended.load(); }));
  }
  CHECK(back_to(threads));
}

TEST_CASE("what a thread destroys last may still lock, enter again, and release") {
  Database database;
  auto engine = database.engine();
  struct Last {
    Engine& engine;
    std::function<void()> work;
    ~Last() { work(); }
  };
  std::atomic<int> done = 0;
  // What a thread makes first it destroys last.
  const auto ends_with = [&](const std::function<void()>& work) {
    std::thread([&] {
      thread_local const Last last{engine, work};
      static_cast<void>(last.engine);
      CHECK(engine.try_lock("before").has_value());
    }).join();
  };
  for (int i = 0; i < 3; ++i)
    ends_with([&] {
      auto lock = engine.lock("last");
      auto inner = engine.try_lock("last");
      if (!inner || inner->token() != lock.token()) return;
      // It can be looked for in a deadlock, and moved.
      auto other = engine.lock("another");
      const Lock moved = std::move(other);
      if (engine.try_lock_for("another", 1ms) && inner->release() == Released::still_held) ++done;
    });
  CHECK(done == 3);
  CHECK(eventually([&] { return database.admin().owner("last").empty(); }));
  CHECK(database.admin().owner("another").empty());
}

TEST_CASE("locks and the engine may end inside the observer") {
  Database database;
  const auto threads = count_threads();
  std::mutex mutex;
  std::optional<Engine> engine;  // guarded by mutex
  std::optional<Lock> lock;      // likewise
  std::atomic<int> granted{0};
  std::atomic<bool> ended{false};
  {
    const std::lock_guard guard(mutex);
    engine = database.engine({.reaper = {.every = 5ms}, .observer = [&](const Event& event) {
                                if (event.kind != Event::Kind::granted || ++granted < 2) return;
                                {
                                  const std::lock_guard mine(mutex);
                                  lock.reset();
                                  engine.reset();
                                }
                                ended = true;
                              }});
    lock = engine->try_lock("first", renewed_often());
    const auto second = engine->try_lock("second", renewed_often());
    CHECK(lock.has_value());
    CHECK(second.has_value());
  }
  CHECK(eventually([&] { return ended.load(); }));
  CHECK(database.admin().held() == 0);
  CHECK(back_to(threads));
}

TEST_CASE("an observer that blocks, or throws, holds up neither calls nor renewals nor losses of trust") {
  Database database;
  Gate gate;
  auto engine = database.engine({.observer = [&](const Event&) {
    gate.wait();
    throw std::runtime_error("an observer that throws harms nobody");
  }});
  auto held = engine.try_lock("held", renewed_often());
  REQUIRE(held);
  CHECK(gate.reached());
  for (int i = 0; i < 20; ++i) CHECK(engine.try_lock("job")->release() == Released::freed);
  const auto begun = database.admin().expires_at("held");
  CHECK(eventually([&] { return database.admin().expires_at("held") > begun + 300ms; }));  // a few renewals
  CHECK(held->valid());
  free_by_force(engine, "held");
  CHECK(eventually([&] { return held->loss().has_value(); }));
  CHECK_FALSE(held->valid());
  gate.open();
  CHECK(eventually([&] { return held->lost().stop_requested(); }));
}

TEST_CASE("a lock and its engine end in time although the row is locked by somebody else") {
  Database database;
  const auto request_timeout = 1500ms * slowness(), release_timeout = 300ms * slowness();
  std::optional<Engine> engine = database.engine({.timeouts = {.request = request_timeout, .release = release_timeout},
                                                  .reaper = {.every = 5ms, .retention = 1ms, .grace = 1ms}});
  auto lock = engine->try_lock("job", {.lease = 10min, .renew_every = 10ms});
  REQUIRE(lock);
  database.admin().block("job");
  const auto remaining = lock->remaining();
  REQUIRE(eventually([&] { return lock->remaining() < remaining - 100ms; }));  // renewals wait by now
  const Stopwatch release;
  lock.reset();
  CHECK(release.elapsed() < release_timeout + 2s * slowness());
  const Stopwatch close;
  engine.reset();
  CHECK(close.elapsed() < request_timeout + 2s * slowness());
  database.admin().unblock();
  auto other = database.engine();
  free_by_force(other, "job");  // as it would have ended with its lease
}

TEST_CASE("engines opened and closed by the thousand leave no thread, no descriptor and no memory") {
  Database database;
  // As many as a few seconds allow: a leak of one each shows after fifty.
  constexpr int fewest = 50, most = 2000;
  EventLog news;
  const auto one = [&] {
    auto engine = database.engine({.reaper = {.every = 1ms}, .observer = news.observer()});
    const auto lock = engine.try_lock("job");
    CHECK(lock.has_value());
  };
  for (int i = 0; i < 20; ++i) one();
  const auto threads = count_threads(), open = count_descriptors();
  const auto before = memory();
  const Stopwatch time;
  for (int i = 0; i < fewest || (i < most && time.elapsed() < 5s); ++i) one();
  CHECK(back_to(threads));
  CHECK(count_descriptors() == open);
  if (!sanitized) CHECK(memory() < before + 16);
}

TEST_CASE("no descriptor of an engine is inherited by programs that this process starts") {
  Database database;
  const auto before = descriptors();
  auto engine = database.engine({.connections = 4, .reaper = {.every = 1ms}, .observer = [](const Event&) {}});
  std::vector<std::optional<Lock>> locks(4);
  in_parallel(4, [&](int i) {
    locks[static_cast<std::size_t>(i)] = engine.try_lock("job " + std::to_string(i), renewed_often());
  });
  CHECK_FALSE(answered([&] { return engine.try_lock_for("job 1", 100ms); }));
  int looked_at = 0;
  for (const int descriptor : descriptors()) {
    if (before.contains(descriptor)) continue;
    ++looked_at;
    // A library reads the authorities that a system knows for each connection, and opens sockets, for a moment: what a
    // program can inherit of that is looked at where TLS is.
    const auto target = target_of(descriptor);
    const bool kept = !eventually([&] { return closed_on_exec(descriptor) || target_of(descriptor) != target; });
    CHECK_MESSAGE(!kept, descriptor << " -> " << target);
  }
  CHECK(looked_at >= 2);
}

TEST_CASE("an engine that ends while others wait on it ends their waits with misuse, and leaves nobody in the queue") {
  Database database;
  auto other = database.engine();
  std::vector<Lock> held;
  for (int i = 0; i < 5; ++i) held.push_back(other.lock("job " + std::to_string(i)));
  const auto request_timeout = 5s * slowness();
  std::optional<Engine> engine =
      database.engine({.fairness = Fairness::fifo, .timeouts = {.request = request_timeout}});
  std::atomic<int> misused{0}, others{0};
  const auto expect_misuse = [&](auto call) {
    return std::jthread([&, call] { ++(thrown_by(call).fault == Fault::misuse ? misused : others); });
  };
  // Each has a ticket, or has marked the row of its name: nobody's call begins later than that.
  const auto all_wait = [&] {
    return eventually([&] {
      return database.admin().number(
                 "SELECT COUNT(*) FROM resource_lock WHERE name LIKE 'job %' AND (next_ticket > 0 OR "
                 "wanted_until > 0)") == 5;
    });
  };
  std::stop_source unused;
  Caller caller(database.test_database());
  {
    std::vector<std::jthread> waits;
    waits.push_back(expect_misuse([&engine] { engine->lock("job 0"); }));
    waits.push_back(expect_misuse([&engine, &unused] { engine->lock(unused.get_token(), "job 1"); }));
    waits.push_back(expect_misuse([&engine] { engine->try_lock_for("job 2", 1h); }));
    waits.push_back(expect_misuse([&engine] { engine->wait_free("job 3", 1h); }));
    waits.push_back(expect_misuse([&engine, &caller] {
      caller.run("BEGIN");
      engine->try_lock_in(caller.native(), "job 4", 1h);
    }));
    REQUIRE(all_wait());
    const Stopwatch time;
    engine.reset();
    CHECK(time.elapsed() < request_timeout + 2s * slowness());
  }
  caller.run("ROLLBACK");
  CHECK(misused == 5);
  CHECK(others == 0);
  CHECK(eventually([&] { return other.waiters("job *").empty(); }));
  for (int i = 0; i < 5; ++i) {
    CHECK(held[static_cast<std::size_t>(i)].release() == Released::freed);
    CHECK(other.try_lock("job " + std::to_string(i))->release() == Released::freed);
  }
}

TEST_CASE("exit() ends a global engine that others wait on, and the program") {
  Database database;
  auto engine = database.engine();
  constexpr int threads = 4;
  std::vector<Lock> held;
  for (int i = 0; i < threads; ++i) held.push_back(engine.lock("job " + std::to_string(i)));
  for (int i = 0; i < 8; ++i) {
    Child program(worker({"exit", database.url(), "job", std::to_string(threads)}));
    CHECK(program.line() == "waiting");
    program.tell("exit");
    CHECK(program.wait() == 0);
  }
  for (const auto& lock : held) CHECK(lock.valid());
}
