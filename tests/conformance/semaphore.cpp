// As many hold a name at one time as there are permits.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("as many acquire as there are permits, each with a token of its own, and one more when one was released") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  Semaphore mine(engine, "gpu", 3), theirs(other, "gpu", 3);
  auto one = mine.try_acquire();
  const auto two = theirs.try_acquire();
  const auto three = mine.acquire();
  REQUIRE((one && two));
  CHECK(one->token() != two->token());
  CHECK(one->owner() != two->owner());
  CHECK(three.token() != two->token());
  CHECK_FALSE(mine.try_acquire());
  CHECK_FALSE(theirs.try_acquire());
  CHECK(one->release() == Released::freed);
  const auto next = theirs.try_acquire();
  CHECK(next);
  CHECK_FALSE(mine.try_acquire());
  CHECK(two->valid());
}

TEST_CASE("several permits are taken at one time, all of them or none") {
  Database database;
  auto engine = database.engine();
  Semaphore gpu(engine, "gpu", 4);
  auto three = gpu.try_acquire({.permits = 3});
  REQUIRE(three);
  CHECK_FALSE(gpu.try_acquire({.permits = 2}));
  CHECK_FALSE(answered([&] { return gpu.try_acquire_for(50ms, {.permits = 4}); }));
  auto one = gpu.try_acquire_for(2s, {.permits = 1});
  CHECK(one);
  three->release();
  CHECK_FALSE(gpu.try_acquire({.permits = 4}));
  CHECK(gpu.try_acquire({.permits = 3}));
  one->release();
  CHECK(gpu.acquire({.permits = 4}).valid());
}

TEST_CASE("of ten threads with three permits never more than three are inside") {
  Database database;
  auto engine = database.engine({.connections = 3});
  auto other = database.engine({.connections = 2});
  Semaphore mine(engine, "gpu", 3), theirs(other, "gpu", 3);
  std::atomic<int> inside{0}, most{0}, rounds{0};
  in_parallel(10, [&](int i) {
    for (int round = 0; round < 5; ++round) {
      const auto permit = (i % 2 == 0 ? mine : theirs).acquire();
      const int now = ++inside;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {}
      std::this_thread::sleep_for(2ms);
      --inside;
      ++rounds;
    }
  });
  CHECK(rounds == 50);
  CHECK(most <= 3);
}

TEST_CASE("a thread that acquires twice has two permits, whatever the engine's reentrance is") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::thread});
  Semaphore gpu(engine, "gpu", 2);
  const auto one = gpu.try_acquire();
  const auto two = gpu.try_acquire();
  REQUIRE((one && two));
  CHECK(one->token() != two->token());
  CHECK_FALSE(gpu.try_acquire());
  const Job::Scope here(Job("order 4711"));
  CHECK_FALSE(gpu.try_acquire());
}

TEST_CASE("a permit that expires frees itself, and no other one") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  const auto lease = 3s * slowness();
  Semaphore dying(engine, "gpu", 3, {.lease = lease, .renew = false}), gpu(other, "gpu", 3);
  const auto one = gpu.acquire();
  const Stopwatch watch;
  dying.acquire().detach();
  const auto two = gpu.acquire();
  CHECK_FALSE(gpu.try_acquire());
  auto next = gpu.try_acquire_for(far_longer());
  REQUIRE(next);
  CHECK(watch.elapsed() >= lease - 1ms);  // the step of the coarsest clock
  CHECK(watch.elapsed() < lease + 2s * slowness());
  CHECK_FALSE(gpu.try_acquire());
  CHECK_FALSE(answered([&] { return gpu.try_acquire_for(50ms); }));
  CHECK((one.valid() && two.valid() && next->valid()));
  next->release();
  CHECK(gpu.try_acquire());
}

TEST_CASE(
    "where there are fewer permits than are held nothing is taken away, and nobody gets one until enough are back") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  Semaphore large(engine, "gpu", 4), small(other, "gpu", 2);
  auto one = large.try_acquire(), two = large.try_acquire(), three = large.try_acquire();
  REQUIRE((one && two && three));
  CHECK_FALSE(small.try_acquire());
  CHECK((one->valid() && two->valid() && three->valid()));
  one->release();
  CHECK_FALSE(small.try_acquire());
  two->release();
  auto mine = small.try_acquire();
  REQUIRE(mine);
  CHECK_FALSE(small.try_acquire());
  CHECK(three->valid());
  CHECK(large.try_acquire({.permits = 2}));  // who says that there are more goes by that
}

TEST_CASE("waiting for a permit ends at its time, never before, when it is stopped, or when one is given back") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  Semaphore mine(engine, "gpu", 1), theirs(other, "gpu", 1);
  auto held = theirs.acquire();
  Refusal refusal;
  Stopwatch watch;
  CHECK_FALSE(answered([&] {
    watch = Stopwatch();
    return mine.try_acquire_for(200ms, {}, {}, &refusal);
  }));
  CHECK(watch.elapsed() >= 200ms);
  CHECK(watch.elapsed() < 200ms + 2s * slowness());
  CHECK(refusal.why == Refused::timed_out);
  CHECK_FALSE(mine.try_acquire({}, &refusal));
  CHECK(refusal.why == Refused::busy);
  CHECK(refusal.holder.name == "gpu");
  CHECK_FALSE(answered([&] { return mine.try_acquire_for(-1h); }));
  CHECK_FALSE(answered([&] { return mine.try_acquire_until(std::chrono::steady_clock::time_point::min()); }));
  const auto end = std::chrono::steady_clock::now() + 100ms;
  CHECK_FALSE(answered([&] { return mine.try_acquire_until(end); }));
  CHECK(std::chrono::steady_clock::now() >= end);
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(50ms);
    stop.request_stop();
  });
  CHECK_FALSE(mine.acquire(stop.get_token(), {}, &refusal));
  CHECK(refusal.why == Refused::stopped);
  CHECK_FALSE(mine.try_acquire_for(1h, {}, stop.get_token()));
  std::jthread releaser([&] {
    std::this_thread::sleep_for(50ms);
    held.release();
  });
  CHECK(mine.try_acquire_until(std::chrono::steady_clock::time_point::max()));
  CHECK(mine.acquire(std::stop_source().get_token()));
}

TEST_CASE("a name is held as a lock or as permits, and not both") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  Semaphore gpu(engine, "gpu", 2);
  for (const auto mode : {Mode::exclusive, Mode::shared}) {
    auto lock = engine.try_lock("gpu", {.mode = mode});
    REQUIRE(lock);
    CHECK_FALSE(gpu.try_acquire());
    lock->release();
    const auto permit = gpu.try_acquire();
    REQUIRE(permit);
    CHECK_FALSE(engine.try_lock("gpu", {.mode = mode}));
  }
}

TEST_CASE("a permit is adopted by who has its grant, and renewed, as any lock") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  Semaphore gpu(engine, "gpu", 2);
  const auto one = gpu.acquire();
  const auto grant = gpu.acquire().detach();
  CHECK(other.renew("gpu", grant, 10min));
  auto adopted = other.adopt("gpu", grant);
  REQUIRE(adopted);
  CHECK(adopted->token() == grant.token);
  CHECK_FALSE(other.adopt("gpu", grant));
  CHECK_FALSE(gpu.try_acquire());
  CHECK(adopted->release() == Released::freed);
  CHECK(gpu.try_acquire());
  CHECK(one.valid());
}

TEST_CASE("permits and readers are given back with all that an engine holds, and those of others are not") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  Semaphore mine(engine, "gpu", 3), theirs(other, "gpu", 3);
  SharedMutex catalog(engine, "catalog");
  const auto one = mine.acquire(), two = mine.acquire(), three = theirs.acquire();
  catalog.lock_shared();
  CHECK_FALSE(theirs.try_acquire());
  CHECK(engine.release_all().freed == 3);
  CHECK_FALSE((one.valid() || two.valid() || catalog.held_shared().valid()));
  CHECK(three.valid());
  CHECK(theirs.try_acquire({.permits = 2}));
  CHECK(other.try_lock("catalog"));
  catalog.unlock_shared();
}

TEST_CASE("a permit outlives its semaphore and its engine, also on another thread") {
  Database database;
  auto other = database.engine();
  std::optional<Permit> permit;
  {
    auto engine = database.engine();
    Semaphore gpu(engine, "gpu", 1);
    permit = gpu.try_acquire();
  }
  REQUIRE(permit);
  CHECK(permit->valid());
  Semaphore gpu(other, "gpu", 1);
  CHECK_FALSE(gpu.try_acquire());
  std::thread([&] { permit.reset(); }).join();
  CHECK(gpu.try_acquire());
}

TEST_CASE("numbers of permits that make no sense are refused with the value and the rule, before anything is sent") {
  Database database;
  auto engine = database.engine();
  const auto refused = [&](auto call, std::initializer_list<std::string_view> words) {
    const auto thrown = thrown_by(call);
    CHECK_MESSAGE(thrown.fault == Fault::misuse, thrown.text);
    for (const auto word : words) CHECK_MESSAGE(thrown.names(word), thrown.text, " does not say ", word);
    CHECK(thrown.text.find('\n') == std::string::npos);
  };
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  for (const std::int64_t permits : {std::int64_t{0}, std::int64_t{-1}, least})
    refused([&] { Semaphore(engine, "gpu", permits); }, {"\"gpu\"", std::to_string(permits), "at least 1"});
  Semaphore gpu(engine, "gpu", 4);
  for (const std::int64_t permits : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{5}, least}) {
    const std::initializer_list<std::string_view> words{"AcquireOptions::permits", "from 1 to 4", "\"gpu\""};
    const AcquireOptions options{.permits = permits};
    refused([&] { static_cast<void>(gpu.acquire(options)); }, words);
    refused([&] { static_cast<void>(gpu.acquire(std::stop_token(), options)); }, words);
    refused([&] { static_cast<void>(gpu.try_acquire(options)); }, words);
    refused([&] { static_cast<void>(gpu.try_acquire_for(1s, options)); }, words);
    refused([&] { static_cast<void>(gpu.try_acquire_until(std::chrono::steady_clock::now(), options)); }, words);
  }
  refused([&] { Semaphore(engine, "", 1); }, {"name"});
  refused([&] { Semaphore(engine, "gpu", 1, {.lease = 0us}); }, {"lease", "0"});
  refused([&] { Semaphore(engine, "gpu", 1, {.mode = Mode::shared}); }, {"LockOptions::mode", "shared"});
  refused([&] { Semaphore(engine, "gpu", 4, {.permits = 2}); }, {"LockOptions::permits", "2"});
  refused([&] { Semaphore(engine, "gpu", 4, {.limit = 5}); }, {"LockOptions::limit", "5"});
  refused([&] { Semaphore(engine, "gpu", 4, {.reentrance = Reentrance::thread}); },
          {"LockOptions::reentrance", "thread", "none"});
  CHECK(engine.list().empty());
}
