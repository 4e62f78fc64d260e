// The promise that locks are a job's where one is given, whatever threads and processes it runs on.
#include "support/caller.hpp"
#include "support/child.hpp"
#include "support/database.hpp"
#include "support/deadlock.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <atomic>
#include <latch>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// What `call` answers on a thread of its own.
template <class Call>
auto on_another_thread(Call call) {
  decltype(call()) answer{};
  std::thread([&] { answer = call(); }).join();
  return answer;
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The job "other".
struct OtherJob : HoldsBWantsA {
  explicit OtherJob(Database& database) : HoldsBWantsA(database.engine({.label = "label B"}), {.job = "other"}) {
    REQUIRE(waits(database, 1));
  }
};

// Whether the rows of two names say the same job.
bool of_one_job(Database& database, const std::string& one, const std::string& other) {
  return database.admin().number("SELECT count(*) FROM resource_lock a, resource_lock b WHERE a.name = '" + one +
                                 "' AND b.name = '" + other + "' AND substr(a.actor, 17) = substr(b.actor, 17)") == 1;
}

}  // namespace

TEST_CASE("a job enters what it holds, on any of its threads; its threads without it and other jobs on them do not") {
  Database database;
  auto engine = database.engine(), second = database.engine();
  const LockOptions mine{.job = "order 1"}, another{.job = "order 2"},
      none{.reentrance = Reentrance::none, .job = "order 1"};
  auto outer = engine.try_lock("job", mine);
  REQUIRE(outer);
  auto inner = on_another_thread([&] { return engine.try_lock("job", mine); });
  REQUIRE(inner);
  CHECK(inner->token() == outer->token());
  const auto nobody_else = [&] {
    return !engine.try_lock("job") && !engine.try_lock("job", another) && !engine.try_lock("job", none) &&
           !second.try_lock("job", mine);
  };
  CHECK(nobody_else());
  CHECK(on_another_thread(nobody_else));
  CHECK(outer->release() == Released::still_held);
  CHECK(on_another_thread([&] { return inner->release(); }) == Released::freed);
}

TEST_CASE("a scope makes a job current for what its thread asks for, and for nothing else") {
  Database database;
  EventLog news;
  auto engine = database.engine({.observer = news.observer()});
  const Job job("order 1");
  std::optional<Lock> lock;
  {
    const Job::Scope here(job);
    lock = engine.try_lock("job");
    REQUIRE(lock);
    CHECK(engine.try_lock("job").has_value());
    CHECK_FALSE(engine.try_lock("job", {.job = "order 2"}));  // what is said goes before what is current
    CHECK(on_another_thread([&] { return !engine.try_lock("job"); }));
    {
      const Job::Scope nobody{Job()};
      CHECK_FALSE(engine.try_lock("job"));
    }
    CHECK(engine.try_lock("job").has_value());
  }
  CHECK_FALSE(engine.try_lock("job"));
  CHECK(on_another_thread([&] {
    const Job::Scope there(job);
    return engine.try_lock("job").has_value();
  }));
  lock.reset();
  REQUIRE(news.comes(Event::Kind::released));
  CHECK(news.of(Event::Kind::granted).at(0).job == "order 1");
  CHECK(news.of(Event::Kind::released).at(0).job == "order 1");
}

TEST_CASE("on a pool of two threads no task enters what another one holds, be it the one before on its thread") {
  Database database;
  auto engine = database.engine();
  std::atomic<int> inside = 0, most = 0;
  in_parallel(2, [&](int) {
    std::optional<Lock> left;  // what the task before has left held
    std::string its_name;
    for (int task = 0; task < 15; ++task) {
      const Job::Scope here(Job::unique("task"));
      if (left) CHECK_FALSE(engine.try_lock(its_name));
      left.reset();
      {
        const auto outer = engine.lock("shared");
        most = std::max(most.load(), ++inside);
        const auto inner = engine.lock("shared");
        CHECK(inner.token() == outer.token());
        --inside;
      }
      its_name = std::string(Job::current().name());
      left = engine.try_lock(its_name);
      CHECK(left);
    }
  });
  CHECK(most == 1);
}

TEST_CASE("threads of one job that ask for a name at the same moment are all inside at the same time") {
  Database database;
  auto engine = database.engine();
  constexpr int threads = 4;
  for (const auto fairness : {Fairness::barging, Fairness::fifo}) {
    for (int round = 0; round < 5; ++round) {
      // Somebody else has it first, so that all of them wait.
      auto before = engine.try_lock("job");
      REQUIRE(before);
      std::latch all(threads);
      std::vector<std::optional<Lock>> locks(threads);
      std::jthread opener([&] {
        CHECK(eventually([&] { return round % 2 == 0 || engine.stats().waiting["job"] == threads; }));
        before->release();
      });
      in_parallel(threads, [&](int i) {
        auto& lock = locks[static_cast<std::size_t>(i)];
        lock = engine.try_lock_for("job", 10s * slowness(), {.fairness = fairness, .job = "order 1"});
        all.arrive_and_wait();
      });
      for (const auto& lock : locks) {
        REQUIRE(lock);
        CHECK(lock->token() == locks[0]->token());
        CHECK(lock->valid());
      }
      in_parallel(threads, [&](int i) { locks[static_cast<std::size_t>(i)].reset(); });
      CHECK(database.admin().owner("job").empty());
    }
  }
  CHECK(eventually([&] { return database.admin().number("SELECT count(*) FROM resource_lock_waiter") == 0; }));
}

TEST_CASE(
    "a lock that is moved to another thread stays its job's, used there or not: its deadlock is found and named") {
  Database database;
  EventLog news;
  auto engine = database.engine({.label = "label A", .observer = news.observer()});
  const Job job("order 1");
  auto a = engine.lock("A", {.job = job});
  OtherJob other(database);
  std::string told;
  std::jthread([&, held = std::move(a)]() mutable {
    told = outcome([&] { return engine.try_lock_for("B", 4min, {.job = job}).has_value(); });
    held.release();
  }).join();
  const auto theirs = other.join();
  CHECK((told == "granted") != (theirs == "granted"));
  const auto& text = told == "granted" ? theirs : told;
  const auto here = " of process " + std::to_string(::getpid()) + ")";
  CHECK_MESSAGE(says(text, "label A holds \"A\", waits for \"B\" (job \"order 1\", thread "), text);
  CHECK_MESSAGE(says(text, "label B holds \"B\", waits for \"A\" (job \"other\", thread "), text);
  CHECK_MESSAGE(says(text, here), text);
  if (told != "granted") {
    REQUIRE(news.comes(Event::Kind::deadlock));
    const auto event = news.of(Event::Kind::deadlock).at(0);
    CHECK(event.job == "order 1");
    CHECK(event.label == "label A");
    CHECK(event.text == told);
  }
}

TEST_CASE("a lock that was taken for a job and handed to a worker makes no deadlock for the dispatcher") {
  Database database;
  auto engine = database.engine();
  const Job::Scope dispatcher("dispatcher");
  auto a = engine.lock("A", {.job = "order 1"});
  std::latch end(1);
  std::thread worker([held = std::move(a), &end] { end.wait(); });  // it holds it, and touches it never
  OtherJob other(database);
  CHECK(outcome([&] { return answered([&] { return engine.try_lock_for("B", long_enough).has_value(); }); }) == "busy");
  end.count_down();
  worker.join();
  CHECK(other.join() == "granted");
}

TEST_CASE("when one thread of a job detaches a lock, those who are inside on other threads are told that it is lost") {
  Database database;
  auto engine = database.engine();
  const LockOptions options{.job = "order 1"};
  auto lock = engine.lock("A", options);
  auto entered = on_another_thread([&] { return engine.try_lock("A", options); });
  REQUIRE(entered);
  const auto lost = entered->lost();
  const auto grant = lock.detach();
  CHECK(eventually([&] { return lost.stop_requested(); }));
  CHECK_FALSE(entered->valid());
  free_by_force(engine, "A");
}

TEST_CASE("what was detached is no job's, for all engines, and what is adopted is that of who adopts it") {
  Database database;
  auto engine = database.engine(), second = database.engine();
  const Job::Scope here("order 1");
  auto mark = engine.lock("mark");
  auto a = engine.lock("A");
  CHECK(of_one_job(database, "A", "mark"));
  const auto grant = a.detach();
  CHECK_FALSE(of_one_job(database, "A", "mark"));
  {
    OtherJob other(database);
    const auto wait = [&] { return second.try_lock_for("B", long_enough).has_value(); };
    CHECK(outcome([&] { return answered(wait); }) == "busy");
    CHECK(other.stop() == "busy");
  }
  const auto adopted = second.adopt("A", grant);
  REQUIRE(adopted);
  CHECK(of_one_job(database, "A", "mark"));
}

TEST_CASE("a job that waits in a transaction for what another one holds is seen there: the deadlock is found") {
  Database database;
  auto engine = database.engine();
  const Job job("order 1");
  auto a = engine.lock("A", {.job = job});
  OtherJob other(database);
  std::string told;
  std::jthread([&] {
    const Job::Scope here(job);
    Caller caller(database.test_database());
    caller.begin(database.test_database().beginnings().back());  // one that does not write yet
    told = outcome([&] { return engine.try_lock_in(caller.native(), "B", 4min).has_value(); });
    caller.run("ROLLBACK");
  }).join();
  a.release();
  const auto theirs = other.join();
  CHECK((told == "granted") != (theirs == "granted"));
  CHECK_MESSAGE(says(told + theirs, "deadlock: "), told);
  CHECK_MESSAGE(says(told + theirs, "job \"order 1\""), told);
}

TEST_CASE("a child process that gets its job by DLOCK_JOB is one with its parent where deadlocks are looked for") {
  Database database;
  auto engine = database.engine();
  const auto job = Job::unique("order");
  auto a = engine.lock("A", {.job = job});
  OtherJob other(database);
  Child child(worker({"want", database.url(), "B"}), {job.environment()});  // it holds nothing itself
  const auto told = child.line().value_or("nothing");
  a.release();
  const auto theirs = other.join();
  CHECK((told == "granted") != (theirs == "granted"));
  const auto& text = told == "granted" ? theirs : told;
  CHECK_MESSAGE(says(text, "deadlock: "), text);
  const auto process = told == "granted" ? ::getpid() : child.pid();
  CHECK_MESSAGE(says(text, " of process " + std::to_string(process) + ")"), text);
  CHECK_MESSAGE(says(text, " of another process)"), text);
}

TEST_CASE("a mutex is entered by all threads of a job, and by no other") {
  Database database;
  const auto engine = database.engine();
  Mutex mutex(engine, "job");
  const Job job("order 1");
  const Job::Scope here(job);
  mutex.lock();
  CHECK(on_another_thread([&] { return !mutex.try_lock(); }));
  CHECK(on_another_thread([&] {
    const Job::Scope there(job);
    const bool entered = mutex.try_lock();
    mutex.unlock();
    return entered;
  }));
  mutex.unlock();
  CHECK(database.admin().owner("job").empty());
}

TEST_CASE("the job of an election is current in its callbacks") {
  Database database;
  auto engine = database.engine();
  std::latch told(1);
  Job job;
  Election election(engine, "leader", {.lock = {.job = "leader of orders"}, .on_elected = [&](const Term&) {
                                         job = Job::current();
                                         told.count_down();
                                       }});
  told.wait();
  CHECK(job == "leader of orders");
  CHECK(Job::current().empty());
}
