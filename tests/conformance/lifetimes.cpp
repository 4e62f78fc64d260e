// This file knows the promise that engines and locks may end in any order, anywhere, and leave nothing behind.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/news.hpp"
#include "support/process.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stop_token>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// Waits until nothing runs in this process but what did before.
bool back_to(std::size_t threads) {
  return eventually([&] { return count_threads() <= threads; });
}

// TSan ends a child made by fork() that starts a thread.
#if defined(__SANITIZE_THREAD__)
constexpr bool may_open_after_fork = false;
#else
constexpr bool may_open_after_fork = true;
#endif

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

TEST_CASE("an engine may end before its locks: they are renewed, extended, released, and the threads end with the last") {
  Database database;
  const auto threads = count_threads();
  std::vector<Lock> locks;
  {
    auto engine = database.engine({.reap_every = 20ms});
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
    engine = database.engine({.reap_every = 5ms, .observer = [&](const Event& event) {
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
  std::optional<Engine> engine =
      database.engine({.request_timeout = request_timeout, .release_timeout = release_timeout, .reap_every = 5ms,
                       .retention = 1ms, .grace = 1ms});
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
  News news;
  const auto one = [&] {
    auto engine = database.engine({.reap_every = 1ms, .observer = news.observer()});
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
  auto engine = database.engine({.connections = 4, .reap_every = 1ms, .observer = [](const Event&) {}});
  std::vector<std::optional<Lock>> locks(4);
  in_parallel(4, [&](int i) {
    locks[static_cast<std::size_t>(i)] = engine.try_lock("job " + std::to_string(i), renewed_often());
  });
  CHECK_FALSE(answered([&] { return engine.try_lock_for("job 1", 100ms); }));
  int looked_at = 0;
  for (const int descriptor : descriptors()) {
    if (before.contains(descriptor)) continue;
    ++looked_at;
    CHECK_MESSAGE(closed_on_exec(descriptor), descriptor << " -> " << target_of(descriptor));
  }
  CHECK(looked_at >= 2);
}

TEST_CASE("a child made by fork() cannot use what its parent has, may end it without harm, and opens its own") {
  Database database;
  std::optional<Engine> engine = database.engine({.reap_every = 5ms});
  auto lock = engine->try_lock("job", {.lease = 30s});
  auto kept = engine->try_lock("kept", {.lease = 30s});
  REQUIRE(lock);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto misuse = [](auto call) { return thrown_by(call).fault == Fault::misuse; };
    int code = 0;
    if (!misuse([&] { engine->try_lock("other"); })) code |= 1;
    if (!misuse([&] { engine->reap(); }) || !misuse([&] { engine->reap_all(); })) code |= 2;
    if (!misuse([&] { engine->list(); }) || !misuse([&] { engine->inspect("job"); })) code |= 4;
    if (!misuse([&] { lock->extend(1h); }) || !misuse([&] { kept->release(); })) code |= 8;
    Lock moved(std::move(*lock));
    lock.reset();
    // Where the database is a file, one process shares what it knows of its locks, with the parent's copies.
    if (!may_open_after_fork || opener().server_place == nullptr) ::_exit(code);
    engine = Engine(database.url());
    const auto mine = engine->try_lock("child's");
    if (!mine) code |= 16;
    moved = Lock(std::move(*kept));
    if (engine->try_lock("job")) code |= 32;
    if (const_cast<std::optional<Lock>&>(mine)->release() != Released::freed) code |= 64;
    engine.reset();
    ::_exit(code);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(lock->valid());
  CHECK(database.admin().owner("job") == lock->owner());
  CHECK(lock->release() == Released::freed);
  CHECK(kept->release() == Released::freed);
  CHECK(engine->try_lock("child's").has_value());
}

TEST_CASE("a child made by fork() is another job than its parent, though the same thread goes on") {
  if (!may_open_after_fork || opener().server_place == nullptr) return;
  Database database;
  auto engine = database.engine();
  auto lock = engine.lock("parent's", {.lease = 30s});
  const pid_t child = ::fork();
  if (child == 0) {
    Engine mine(database.url());
    mine.lock("child's", {.lease = 30s}).detach();
    mine.lock("child's other", {.lease = 30s}).detach();
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  // The second half of an actor is the job.
  const auto job_of = [&](const std::string& name) {
    return database.admin().text("SELECT actor FROM resource_lock WHERE name = '" + name + "'").substr(16);
  };
  CHECK(job_of("child''s").size() == 16);
  CHECK(job_of("child''s") == job_of("child''s other"));
  CHECK(job_of("child''s") != job_of("parent''s"));
  database.admin().run("UPDATE resource_lock SET owner = NULL WHERE name LIKE 'child%'");
}
