// The promise that a program which ends can give back all that an engine holds at one time, whoever has it, and that
// what still works under one of these locks is told, and can do no harm.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// Time enough for all of them on a busy machine.
EngineOptions patient() { return {.timeouts = {.release = far_longer()}}; }

}  // namespace

TEST_CASE("all that an engine holds is released at one time, whoever has it, and what others hold stays held") {
  Database database;
  auto engine = database.engine(patient());
  auto other = database.engine();
  const auto theirs = other.lock("theirs");
  const auto plain = engine.lock("plain"), brief = engine.lock("brief", {.renew = false}),
             nobodys = engine.lock("nobody's", {.reentrance = Reentrance::none}),
             of_job = engine.lock("of a job", {.job = "order 4711"}), outer = engine.lock("twice"),
             inner = engine.lock("twice"), of_node = engine.lock("of a node", {.reentrance = Reentrance::node});
  const auto adopted = engine.adopt("adopted", other.lock("adopted").detach());
  std::optional<Lock> of_thread;
  std::thread([&] { of_thread = engine.lock("of a thread"); }).join();
  Mutex mutex(engine, "of a mutex");
  mutex.lock();
  REQUIRE(adopted);
  const auto released = engine.release_all();
  CHECK(released.freed == 9);
  CHECK(released.still_held == 0);
  CHECK(released.was_lost == 0);
  CHECK(released.unconfirmed == 0);
  CHECK(database.admin().held() == 1);
  CHECK(theirs.valid());
  CHECK(other.try_lock("twice"));
  CHECK_FALSE(mutex.held().valid());
  mutex.unlock();
  CHECK(engine.release_all().freed == 0);
}

TEST_CASE("a lock that was released with all others is over at once, and was not lost") {
  Database database;
  EventLog events;
  auto options = patient();
  options.observer = events.observer();
  auto engine = database.engine(options);
  auto lock = engine.lock("job"), inner = engine.lock("job"), left = engine.lock("job");
  std::atomic<bool> told{false};
  const std::stop_callback callback(lock.lost(), [&] { told = true; });
  CHECK(lock.valid());
  CHECK(engine.release_all().freed == 1);
  CHECK_FALSE(lock.valid());
  CHECK(lock.remaining() == Duration{});
  CHECK(eventually([&] { return told.load(); }));
  CHECK_FALSE(lock.loss());
  CHECK(engine.hold_count("job") == 0);
  CHECK(lock.name() == "job");
  for (const auto& thrown :
       {thrown_by([&] { lock.check(); }), thrown_by([&] { lock.extend(1min); }), thrown_by([&] { lock.ensure(1min); }),
        thrown_by([&] { lock.update_metadata("{}"); }), thrown_by([&] { static_cast<void>(lock.fence_sql()); })})
    CHECK(thrown.fault == Fault::lost);
  const auto next = engine.lock("job");
  CHECK(next.token() > lock.token());
  CHECK(lock.release() == Released::freed);
  CHECK(lock.release() == Released::freed);
  CHECK(inner.release() == Released::freed);
  static_cast<void>(left.detach());
  CHECK(next.valid());
  CHECK(database.admin().held() == 1);
  CHECK(events.comes(Event::Kind::released));
  CHECK_FALSE(events.has(Event::Kind::lost));
}

TEST_CASE("a lock that was released with all others never fences, also where nobody was granted it since") {
  Database database;
  database.admin().run("CREATE TABLE app (n bigint)");
  auto engine = database.engine(patient());
  for (const auto& beginning : database.test_database().beginnings()) {
    INFO(beginning.name);
    auto lock = engine.lock("job");
    CHECK(engine.release_all().freed == 1);
    Caller caller(database.test_database());
    caller.begin(beginning);
    CHECK(thrown_by([&] { lock.fence(caller.native()); }).fault == Fault::lost);
    try {
      caller.run("INSERT INTO app VALUES (1)");
      caller.run("COMMIT");
    } catch (const std::exception&) {  // it was made impossible
    }
    CHECK(database.admin().number("SELECT count(*) FROM app") == 0);
  }
}

TEST_CASE("what was fenced before is committed under the lock, which is free only after that") {
  Database database;
  database.admin().run("CREATE TABLE app (n bigint)");
  auto engine = database.engine({.timeouts = {.release = 300ms * slowness()}});
  auto other = database.engine();
  auto lock = engine.lock("job"), beside = engine.lock("beside", {.renew = false});
  Caller caller(database.test_database());
  caller.begin(database.test_database().beginnings().front());
  lock.fence(caller.native());
  caller.run("INSERT INTO app VALUES (1)");
  const Stopwatch time;
  const auto released = engine.release_all();
  CHECK(time.elapsed() < 300ms * slowness() + 2s * slowness());
  CHECK(released.unconfirmed >= 1);
  CHECK(released.freed + released.unconfirmed == 2);
  CHECK_FALSE(lock.valid());
  CHECK(granted_nothing([&] { return answered([&] { return other.try_lock_for("job", 20ms).has_value(); }); }));
  caller.run("COMMIT");
  CHECK(database.admin().number("SELECT count(*) FROM app") == 1);
  CHECK(lock.release() == Released::unconfirmed);
  CHECK(other.try_lock_for("job", 1min).has_value());  // the engine tries on
  CHECK(other.try_lock_for("beside", 1min).has_value());
}

TEST_CASE("the entries of one engine end, and its node holds the lock as long as another has one") {
  Database database;
  auto options = patient();
  options.node = "replica-1";
  options.reentrance = Reentrance::node;
  auto engine = database.engine(options), other = database.engine(options);
  auto first = engine.lock("job"), second = engine.lock("job"), theirs = other.lock("job");
  const auto released = engine.release_all();
  CHECK(released.still_held == 2);
  CHECK(released.freed == 0);
  CHECK(theirs.valid());
  CHECK(other.inspect("job")->entries == 1);
  CHECK(first.release() == Released::still_held);
  CHECK_FALSE(second.valid());
  CHECK(theirs.release() == Released::freed);
}

TEST_CASE("a lock that was lost before is told as lost, and takes nothing from its next holder") {
  Database database;
  auto engine = database.engine(patient());
  auto other = database.engine();
  auto lock = engine.lock("job", {.renew = false});
  CHECK(other.force_release("job", lock.token()));
  const auto next = other.lock("job");
  const auto released = engine.release_all();
  CHECK(released.was_lost == 1);
  CHECK(released.freed == 0);
  CHECK(next.valid());
  CHECK(other.inspect("job")->token == next.token());
  CHECK(lock.release() == Released::was_lost);
}

TEST_CASE("who waits is granted what was released with all others") {
  Database database;
  auto engine = database.engine(patient());
  auto other = database.engine();
  const auto one = engine.lock("one", {.renew = false}), two = engine.lock("two", {.renew = false});
  std::atomic<int> granted{0};
  std::vector<std::jthread> waiters;
  waiters.emplace_back([&] { granted += other.try_lock_for("one", 2min).has_value() ? 1 : 0; });
  waiters.emplace_back([&] { granted += engine.try_lock_for("two", 2min).has_value() ? 1 : 0; });
  CHECK(eventually([&] { return other.stats().waiting.contains("one") && engine.stats().waiting.contains("two"); }));
  CHECK(engine.release_all().freed == 2);
  waiters.clear();
  CHECK(granted == 2);
}

TEST_CASE("an election steps down when all is released") {
  Database database;
  auto engine = database.engine(patient());
  std::atomic<int> elected{0}, deposed{0};
  Election election(engine, "leader",
                    {.on_elected = [&](const Term&) { ++elected; }, .on_deposed = [&] { ++deposed; }});
  CHECK(eventually([&] { return elected > 0 && election.is_leader(); }));
  CHECK(engine.release_all().freed == 1);
  CHECK(eventually([&] { return deposed > 0; }));
  election.stop();
}

TEST_CASE(
    "threads that take, extend, enter, fence and release while all is released again and again leave nothing behind") {
  Database database;
  auto engine = database.engine({.connections = 4, .timeouts = {.release = far_longer()}});
  std::atomic<bool> done{false};
  std::mutex mutex;
  std::string broken;  // what was thrown that is no answer to such a race; guarded by mutex
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, name = "job " + std::to_string(i % 2)] {
      while (!done) try {
          auto lock = engine.try_lock_for(name, far_longer());
          if (!lock) continue;
          auto inner = engine.try_lock(name);
          lock->extend(1min);
          if (lock->valid()) lock->release();
          else lock->check();
        } catch (const Error& error) {
          const auto fault = error.fault();
          if (fault == Fault::lost || fault == Fault::timeout || fault == Fault::in_doubt) continue;
          const std::lock_guard guard(mutex);
          broken = error.what();
        }
    });
  std::size_t freed = 0;
  const auto end = std::chrono::steady_clock::now() + far_longer();
  while (freed < 50 && std::chrono::steady_clock::now() < end) freed += engine.release_all().freed;
  done = true;
  threads.clear();
  CHECK(freed >= 50);
  CHECK(broken == "");
  engine.release_all();
  CHECK(eventually([&] { return database.admin().held() == 0; }));
}
