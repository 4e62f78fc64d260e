// The promise that a child made by fork() uses nothing of its parent's, harms nothing, and opens its own. Asked without
// a sanitizer only: the runtimes of GCC's do not survive a fork() among threads. Their allocator's mutexes stay locked
// in the child (10 of 128 runs of this file never ended).
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/exit_status.hpp"
#include "support/process.hpp"
#include "support/rows.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <csignal>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// Where the database is a file, one process shares what it knows of its locks, with the parent's copies.
bool may_open_after_fork() { return opener().server_database != nullptr; }

// How a child ended: by SIGALRM if it took too long, with 99 if something was thrown there. `work`: answers
// its exit status. Nothing of the parent's is destroyed in it.
template <class Work>
ExitStatus end_of_child(Work work) {
  const auto bound = std::chrono::ceil<std::chrono::seconds>(60s * slowness());
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGALRM, SIG_DFL);
    ::alarm(static_cast<unsigned>(bound.count()));
    try {
      ::_exit(work());
    } catch (...) { ::_exit(99); }
  }
  return await_end(child);
}

}  // namespace

TEST_CASE("a child made by fork() cannot use what its parent has, may end it without harm, and opens its own") {
  Database database;
  std::optional<Engine> engine = database.engine({.reaper = {.every = 5ms}});
  auto lock = engine->try_lock("job", {.lease = 30s});
  auto kept = engine->try_lock("kept", {.lease = 30s});
  REQUIRE(lock);
  CHECK(end_of_child([&] {
          const auto misuse = [](auto call) { return thrown_by(call).fault == Fault::misuse; };
          int code = 0;
          if (!misuse([&] { engine->try_lock("other"); })) code |= 1;
          if (!misuse([&] { engine->reap(); }) || !misuse([&] { engine->reap_all(); })) code |= 2;
          if (!misuse([&] { engine->list(); }) || !misuse([&] { engine->inspect("job"); })) code |= 4;
          if (!misuse([&] { lock->extend(1h); }) || !misuse([&] { kept->release(); })) code |= 8;
          if (lock->valid() || *kept || lock->remaining() != 0us || !misuse([&] { lock->check(); })) code |= 128;
          Lock moved(std::move(*lock));
          lock.reset();
          if (!may_open_after_fork()) return code;
          engine = database.engine();
          const auto mine = engine->try_lock("child's");
          if (!mine) code |= 16;
          moved = Lock(std::move(*kept));
          if (engine->try_lock("job")) code |= 32;
          if (const_cast<std::optional<Lock>&>(mine)->release() != Released::freed) code |= 64;
          engine.reset();
          return code;
        }) == 0);
  CHECK(lock->valid());
  CHECK(database.admin().owner("job") == lock->owner());
  CHECK(lock->release() == Released::freed);
  CHECK(kept->release() == Released::freed);
  CHECK(engine->try_lock("child's").has_value());
}

TEST_CASE("a child made by fork() is another job than its parent, though the same thread goes on") {
  if (!may_open_after_fork()) return;
  Database database;
  auto engine = database.engine();
  auto lock = engine.lock("parent's", {.lease = 30s});
  CHECK(end_of_child([&] {
          auto mine = database.engine();
          mine.lock("child's", {.lease = 30s}).detach();
          mine.lock("child's other", {.lease = 30s}).detach();
          return 0;
        }) == 0);
  // The second half of an actor is the job.
  const auto job_of = [&](const std::string& name) {
    return database.admin().text("SELECT actor FROM resource_lock WHERE name = '" + name + "'").substr(16);
  };
  CHECK(job_of("child''s").size() == 16);
  CHECK(job_of("child''s") == job_of("child''s other"));
  CHECK(job_of("child''s") != job_of("parent''s"));
  database.admin().run("UPDATE resource_lock SET owner = NULL WHERE name LIKE 'child%'");
}

TEST_CASE("a child made by fork() leads nothing, and its parent stays in office") {
  Database database;
  auto engine = database.engine();
  std::optional<Election> election(std::in_place, engine, "job");
  std::optional<LeaderObserver> observer(std::in_place, engine, "job", [](const auto&) {});
  REQUIRE(eventually([&] { return election->is_leader(); }));
  const auto term = election->term();
  CHECK(end_of_child([&] {
          const auto misuse = [](auto call) { return thrown_by(call).fault == Fault::misuse; };
          int code = 0;
          if (election->is_leader()) code |= 1;
          if (!misuse([&] { election->term(); }) || !misuse([&] { election->resign(); })) code |= 2;
          if (!misuse([&] { election->leader(); })) code |= 4;
          if (!misuse([&] { Election(engine, "other"); })) code |= 8;
          election->stop();
          election.reset();
          observer.reset();
          return code;
        }) == 0);
  CHECK(election->is_leader());
  CHECK(term->valid());
  CHECK(leader_of(engine, "job")->token == term->token());
}

TEST_CASE("in a child made by fork() locking is refused, and unlocking does nothing") {
  Database database;
  auto engine = database.engine();
  Mutex mutex(engine, "job");
  mutex.lock();
  CHECK(end_of_child([&] {
          const bool refused = thrown_by([&] { mutex.lock(); }).fault == Fault::misuse &&
                               thrown_by([&] { mutex.held(); }).fault == Fault::misuse;
          mutex.unlock();
          return refused ? 0 : 1;
        }) == 0);
  CHECK(mutex.held().valid());
  CHECK(database.admin().held() == 1);
  mutex.unlock();
  CHECK(database.admin().held() == 0);
}

TEST_CASE("in a child made by fork() nobody reads, and nobody acquires; what ends there ends nothing of its parent's") {
  Database database;
  auto engine = database.engine();
  auto mutex = std::make_unique<SharedMutex>(engine, "job");
  auto semaphore = std::make_unique<Semaphore>(engine, "gpu", 1);
  mutex->lock_shared();
  std::optional<Permit> permit = semaphore->acquire();
  CHECK(end_of_child([&] {
          const auto misuse = [](auto call) { return thrown_by(call).fault == Fault::misuse; };
          int code = 0;
          if (!misuse([&] { mutex->lock_shared(); }) || !misuse([&] { mutex->lock(); })) code |= 1;
          if (!misuse([&] { mutex->held_shared(); }) || !misuse([&] { mutex->held(); })) code |= 2;
          if (!misuse([&] { static_cast<void>(semaphore->try_acquire()); })) code |= 4;
          mutex->unlock_shared();
          mutex.reset();
          permit.reset();
          semaphore.reset();
          return code;
        }) == 0);
  CHECK(mutex->held_shared().valid());
  CHECK(permit->valid());
  CHECK(database.admin().held() == 2);
  CHECK(permit->release() == Released::freed);
  mutex->unlock_shared();
}

TEST_CASE("a child made by fork() neither enters nor leaves what its parent holds") {
  Database database;
  auto engine = database.engine();
  auto outer = engine.try_lock("job");
  auto inner = engine.try_lock("job");
  REQUIRE(inner);
  CHECK(end_of_child([&] {
          const bool refused = thrown_by([&] { static_cast<void>(engine.try_lock("job")); }).fault == Fault::misuse;
          inner.reset();
          outer.reset();
          return refused ? 0 : 1;
        }) == 0);
  CHECK(database.admin().owner("job") == outer->owner());
  CHECK(inner->release() == Released::still_held);
  CHECK(outer->release() == Released::freed);
}

TEST_CASE(
    "a child made by fork() opens its own engine, whatever connections its parent was opening and closing meanwhile") {
  if (!may_open_after_fork()) return;
  Database database;
  std::vector<std::jthread> parents;
  for (int i = 0; i < 4; ++i)
    parents.emplace_back([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) try {
          static_cast<void>(database.engine().try_lock("parent's", {.lease = 30s}));
        } catch (const Error&) {  // of a busy machine
        }
    });
  const Stopwatch time;
  for (int i = 0; i < 40 || (i < 400 && time.elapsed() < 5s); ++i) {
    CAPTURE(i);
    REQUIRE(end_of_child([&] {
              auto mine = database.engine();
              return mine.lock("child's", {.lease = 30s}).release() == Released::freed ? 0 : 1;
            }) == 0);
  }
}
