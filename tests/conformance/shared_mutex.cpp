// Many hold a name to read, or one to write, wherever the standard library wants a shared mutex.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

LockOptions options_of_readers() {
  LockOptions options;
  options.mode = Mode::shared;
  return options;
}

bool is_free(Engine& engine, std::string_view name) { return engine.try_lock(name).has_value(); }

bool can_be_read(Engine& engine, std::string_view name) {
  return engine.try_lock(name, options_of_readers()).has_value();
}

}  // namespace

TEST_CASE("a shared mutex works with shared_lock, unique_lock, scoped_lock and lock_guard") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  SharedMutex one(engine, "one"), two(engine, "two");
  {
    const std::scoped_lock both(one, two);
    CHECK_FALSE(can_be_read(other, "one"));
    CHECK_FALSE(can_be_read(other, "two"));
  }
  CHECK(is_free(other, "one"));
  {
    const std::shared_lock reading(one);
    const std::lock_guard writing(two);
    CHECK(can_be_read(other, "one"));
    CHECK_FALSE(is_free(other, "one"));
    CHECK_FALSE(can_be_read(other, "two"));
  }
  {
    std::shared_lock guard(one, std::try_to_lock);
    CHECK(guard.owns_lock());
    guard.unlock();
    CHECK(is_free(other, "one"));
    CHECK(guard.try_lock_for(1min));
    const std::shared_lock until(two, std::chrono::system_clock::now() + 1min);
    CHECK(until.owns_lock());
    CHECK_FALSE(is_free(other, "two"));
  }
  {
    const std::unique_lock guard(one, 1min);
    CHECK(guard.owns_lock());
    const std::unique_lock until(two, std::chrono::steady_clock::now() + 1min);
    CHECK(until.owns_lock());
  }
  CHECK(is_free(other, "one"));
  CHECK(is_free(other, "two"));
}

TEST_CASE("readers of threads and engines are inside together, and a writer is alone") {
  Database database;
  auto engine = database.engine({.connections = 3});
  auto other = database.engine();
  SharedMutex mine(engine, "counter"), theirs(other, "counter");
  std::atomic<int> readers{0}, writers{0};
  in_parallel(6, [&](int i) {
    auto& mutex = i % 2 == 0 ? mine : theirs;
    for (int round = 0; round < 5; ++round) {
      if (i < 2) {
        const std::lock_guard guard(mutex);
        CHECK(++writers == 1);
        CHECK(readers == 0);
        std::this_thread::yield();
        --writers;
      } else {
        const std::shared_lock guard(mutex);
        ++readers;
        CHECK(writers == 0);
        std::this_thread::yield();
        --readers;
      }
    }
  });
  const std::shared_lock here(mine);
  std::thread([&] { CHECK(std::shared_lock(mine, std::try_to_lock).owns_lock()); }).join();
  CHECK(std::shared_lock(theirs, std::try_to_lock).owns_lock());
}

TEST_CASE("each reader has a token, a lease and a loss of its own") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  SharedMutex mine(engine, "job"), theirs(other, "job");
  const std::shared_lock here(mine), there(theirs);
  CHECK(mine.held_shared().token() != theirs.held_shared().token());
  CHECK(mine.held_shared().owner() != theirs.held_shared().owner());
  theirs.held_shared().release();
  CHECK(mine.held_shared().valid());
  CHECK_FALSE(theirs.held_shared().valid());
  CHECK_FALSE(is_free(other, "job"));
}

TEST_CASE("who writes reads on the way, and stays alone until both are unlocked") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  SharedMutex mutex(engine, "job");
  mutex.lock();
  const auto token = mutex.held().token();
  CHECK(mutex.try_lock_shared());
  CHECK(mutex.held_shared().token() == token);
  CHECK_FALSE(can_be_read(other, "job"));
  mutex.unlock();
  CHECK(thrown_by([&] { mutex.held(); }).fault == Fault::misuse);
  CHECK_FALSE(can_be_read(other, "job"));
  mutex.unlock_shared();
  CHECK(is_free(other, "job"));
}

TEST_CASE("a shared mutex is recursive per thread, and other threads hold nothing of it") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  SharedMutex mutex(engine, "job");
  mutex.lock_shared();
  CHECK(mutex.try_lock_shared());
  const auto plain = engine.try_lock("job", options_of_readers());
  REQUIRE(plain);
  CHECK(plain->token() == mutex.held_shared().token());
  CHECK(thrown_by([&] { mutex.held(); }).fault == Fault::misuse);
  std::thread([&] {
    CHECK_FALSE(mutex.try_lock());
    CHECK_FALSE(answered([&] { return mutex.try_lock_for(1ms); }));
    CHECK(thrown_by([&] { mutex.held_shared(); }).fault == Fault::misuse);
    mutex.unlock_shared();  // it holds nothing
    mutex.unlock();
  }).join();
  mutex.unlock();  // it is locked shared
  mutex.unlock_shared();
  mutex.unlock_shared();
  CHECK_FALSE(is_free(other, "job"));
  CHECK(thrown_by([&] { mutex.held_shared(); }).fault == Fault::misuse);
}

TEST_CASE("who reads and wants to write is told that it would wait for itself, at once, and goes on reading") {
  Database database;
  auto engine = database.engine();
  SharedMutex mutex(engine, "job");
  const std::shared_lock reading(mutex);
  CHECK(thrown_by([&] { mutex.lock(); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { static_cast<void>(mutex.try_lock()); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { static_cast<void>(mutex.try_lock_for(1h)); }).fault == Fault::misuse);
  CHECK(mutex.held_shared().valid());
}

TEST_CASE(
    "the only reader becomes the writer and a reader again, without a moment for others, and unlocks as it locked") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  SharedMutex mine(engine, "job"), theirs(other, "job");
  mine.lock_shared();
  theirs.lock_shared();
  CHECK_FALSE(mine.held_shared().try_upgrade());
  CHECK(mine.held_shared().valid());
  theirs.unlock_shared();
  CHECK(mine.held_shared().try_upgrade());
  CHECK_FALSE(can_be_read(other, "job"));
  mine.held_shared().downgrade();
  CHECK(can_be_read(other, "job"));
  CHECK_FALSE(is_free(other, "job"));
  mine.unlock_shared();
  CHECK(is_free(other, "job"));
}

TEST_CASE("a writer that waits comes before readers that come later, while those inside may enter again") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  auto third = database.engine();
  SharedMutex mine(engine, "job"), theirs(other, "job");
  mine.lock_shared();
  std::atomic<bool> written{false};
  std::jthread writer([&] {
    const std::lock_guard guard(theirs);
    written = true;
  });
  CHECK(eventually([&] { return !can_be_read(third, "job"); }));
  CHECK(mine.try_lock_shared());
  mine.unlock_shared();
  CHECK_FALSE(written);
  mine.unlock_shared();
  CHECK(eventually([&] { return written.load(); }));
  writer.join();
  CHECK(eventually([&] { return can_be_read(third, "job"); }));
}

TEST_CASE("a shared mutex is entered by all threads of a job") {
  Database database;
  auto engine = database.engine();
  SharedMutex mutex(engine, "job");
  const Job job("order 4711");
  const Job::Scope here(job);
  mutex.lock();
  std::thread([&] { CHECK_FALSE(mutex.try_lock_shared()); }).join();
  std::thread([&] {
    const Job::Scope there(job);
    const std::shared_lock guard(mutex, std::try_to_lock);
    CHECK(guard.owns_lock());
  }).join();
  mutex.unlock();
}

TEST_CASE("fifty readers are held and renewed, and the writer comes when the last one has gone") {
  Database database;
  auto engine = database.engine({.connections = 4});
  auto other = database.engine();
  auto often = renewed_often();
  often.lease = 2s * slowness();
  often.mode = Mode::shared;
  often.reentrance = Reentrance::none;
  std::vector<Lock> readers;
  for (int i = 0; i < 50; ++i) readers.push_back(engine.lock("job", often));
  std::set<Token> tokens;
  for (const auto& reader : readers) tokens.insert(reader.token());
  CHECK(tokens.size() == readers.size());
  const Stopwatch watch;
  while (watch.elapsed() < 2 * *often.lease) {
    std::this_thread::sleep_for(10ms);
    REQUIRE(std::ranges::all_of(readers, [](const Lock& reader) { return reader.valid(); }));
  }
  while (!readers.empty()) {
    CHECK_FALSE(is_free(other, "job"));
    readers.erase(readers.begin() + static_cast<std::ptrdiff_t>(readers.size() / 4), readers.end());
  }
  CHECK(is_free(other, "job"));
}

TEST_CASE("a reader that died keeps writers out until its lease is over, and no longer") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  const auto lease = 3s * slowness();
  const Stopwatch watch;
  engine.lock("job", {.mode = Mode::shared, .lease = lease, .renew = false}).detach();
  SharedMutex mutex(other, "job");
  CHECK_FALSE(mutex.try_lock());
  CHECK(can_be_read(other, "job"));
  CHECK(mutex.try_lock_for(far_longer()));
  CHECK(watch.elapsed() >= lease - 1ms);  // the step of the coarsest clock
  CHECK(watch.elapsed() < lease + 2s * slowness());
  mutex.unlock();
}

TEST_CASE("trying to read or to write gives up at its time, never before, and takes any duration") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  SharedMutex mutex(engine, "job");
  {
    const auto lock = other.try_lock("job");
    Stopwatch watch;
    CHECK_FALSE(answered([&] {
      watch = Stopwatch();
      return mutex.try_lock_shared_for(200ms);
    }));
    CHECK(watch.elapsed() >= 200ms);
    CHECK(watch.elapsed() < 200ms + 2s * slowness());
    CHECK_FALSE(answered([&] { return mutex.try_lock_for(-1h); }));
    CHECK_FALSE(answered([&] { return mutex.try_lock_shared_for(-1h); }));
    CHECK_FALSE(answered([&] { return mutex.try_lock_until(std::chrono::steady_clock::time_point::min()); }));
    CHECK_FALSE(answered([&] { return mutex.try_lock_shared_until(std::chrono::system_clock::now() - 1h); }));
    const auto end = std::chrono::steady_clock::now() + 100ms;
    CHECK_FALSE(answered([&] { return mutex.try_lock_shared_until(end); }));
    CHECK(std::chrono::steady_clock::now() >= end);
  }
  CHECK(mutex.try_lock_shared_for(std::chrono::hours::max()));
  CHECK(mutex.try_lock_shared_until(std::chrono::steady_clock::time_point::max()));
  for (int i = 0; i < 2; ++i) mutex.unlock_shared();
  CHECK(mutex.try_lock_for(std::chrono::duration<double>(1e300)));
  CHECK(mutex.try_lock_until(std::chrono::steady_clock::time_point::max()));
  for (int i = 0; i < 2; ++i) mutex.unlock();
}

TEST_CASE("unlocking what was lost does not throw; held_shared() has told before") {
  Database database;
  EventLog news;
  auto engine = database.engine({.observer = news.observer()});
  auto other = database.engine();
  const auto lease = 500ms * slowness();
  SharedMutex mutex(engine, "job", {.lease = lease, .renew = false});
  mutex.lock_shared();
  CHECK(eventually([&] { return mutex.held_shared().loss().has_value(); }));
  CHECK(thrown_by([&] { mutex.held_shared().check(); }).fault == Fault::lost);
  CHECK(news.comes(Event::Kind::lost));
  CHECK(eventually([&] { return is_free(other, "job"); }));
  mutex.unlock_shared();
}

TEST_CASE("a shared mutex outlives the handle it was made with, and releases what it holds at its end") {
  Database database;
  auto other = database.engine();
  std::optional<Engine> engine(database.engine());
  {
    SharedMutex one(*engine, "one"), two(*engine, "two");
    engine.reset();
    one.lock_shared();
    one.lock_shared();
    two.lock();
    CHECK_FALSE(is_free(other, "one"));
    CHECK_FALSE(can_be_read(other, "two"));
  }
  CHECK(is_free(other, "one"));
  CHECK(is_free(other, "two"));
}

TEST_CASE("a shared mutex of another reentrance, of a mode or with a bad name is refused before anything is sent") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  const auto node = thrown_by([&] { SharedMutex(engine, "job", {.reentrance = Reentrance::node}); });
  CHECK(node.fault == Fault::misuse);
  CHECK(node.names("LockOptions::reentrance"));
  const auto shared = thrown_by([&] { SharedMutex(engine, "job", {.mode = Mode::shared}); });
  CHECK(shared.fault == Fault::misuse);
  CHECK((shared.names("LockOptions::mode") && shared.names("shared") && shared.names("\"job\"")));
  CHECK(thrown_by([&] { Mutex(engine, "job", {.mode = Mode::shared}); }).fault == Fault::misuse);
  CHECK(thrown_by([&] { SharedMutex(engine, ""); }).fault == Fault::misuse);
  CHECK(engine.list().empty());
  SharedMutex mutex(engine, "job");  // recursive whatever the engine's default is
  mutex.lock_shared();
  CHECK(mutex.try_lock_shared());
  mutex.unlock_shared();
  mutex.unlock_shared();
}
