// The reaper beside permits: while they are taken, renewed, given back and left to die, never more are held than there
// are, and one whose holder has died comes free, and no other with it.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
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

constexpr std::int64_t limit = 3;

LockOptions permit(LockOptions options = {}) {
  options.mode = Mode::permits;
  options.limit = limit;
  return options;
}

// Reaps all the time, by itself and when it is told to, what was used a moment ago.
EngineOptions reaping() { return {.reaper = {.every = 20ms, .retention = 20ms, .grace = 20ms}}; }

// When permits were trusted, by those who had them.
class Trusted {
 public:
  void add(Instant begun, Instant ended, std::int64_t permits) {
    if (ended <= begun) return;
    const std::lock_guard guard(mutex_);
    changes_.emplace_back(begun, permits);
    changes_.emplace_back(ended, -permits);
  }
  // The most of them at one moment; who ends at a moment is not there in it.
  std::int64_t most() const {
    auto changes = changes_;
    std::ranges::sort(changes);
    std::int64_t now = 0, most = 0;
    for (const auto& [when, permits] : changes) most = std::max(most, now += permits);
    return most;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<Instant, std::int64_t>> changes_;  // guarded by mutex_ while there are threads
};

// Its lease has been over for so long, by the database's clock, that the reaper forgets it.
std::string long_dead(std::string_view owner) {
  return "UPDATE resource_lock_holder SET expires_at = acquired_at - 61000000 WHERE owner = '" + std::string(owner) +
         "'";
}

long long holders(Database& database) {
  return database.admin().number("SELECT count(*) FROM resource_lock_holder WHERE token > 0");
}

// Those who were left to die, and until when they were trusted.
class Dead {
 public:
  void add(std::string owner, Instant trusted_until) {
    const std::lock_guard guard(mutex_);
    all_.emplace_back(std::move(owner), trusted_until);
  }
  // Those whose trust is over, once.
  std::vector<std::string> over() {
    const std::lock_guard guard(mutex_);
    std::vector<std::string> owners;
    std::erase_if(all_, [&](const auto& each) {
      const bool over = each.second <= BootClock::now();
      if (over) owners.push_back(each.first);
      return over;
    });
    return owners;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::string, Instant>> all_;  // guarded by mutex_
};

}  // namespace

TEST_CASE("while the reaper works, permits that are taken, renewed, given back and left to die are never too many") {
  Database database;
  Trusted trusted;
  Dead dead;
  std::atomic<int> kept = 0, died = 0;
  auto reaper = database.engine(reaping());
  std::jthread reaps([&](const std::stop_token& stop) {
    Admin admin(database.test_database());
    while (!stop.stop_requested()) {
      for (const auto& owner : dead.over())
        CHECK(eventually([&] {
          try {
            admin.run(long_dead(owner));
            return true;
          } catch (const std::exception&) { return false; }  // a deadlock with those who take and give back
        }));
      static_cast<void>(reaper.reap());
      std::this_thread::sleep_for(10ms);  // where one writes at a time the others are to come in
    }
  });
  std::vector<Engine> engines;
  for (int i = 0; i < 2; ++i) engines.push_back(database.engine({.polling = {.longest = 50ms}}));
  in_parallel(6, [&](int thread) {
    auto& engine = engines[static_cast<std::size_t>(thread % 2)];
    for (int round = 0; round < 6; ++round) {
      const bool dies = (thread + round) % 4 == 0;
      auto options =
          permit({.permits = 1 + round % 2, .lease = dies ? 300ms * slowness() : Duration{1h}, .renew = !dies});
      if (!dies) options.renew_every = 20ms;
      auto lock = engine.lock("gpu", options);
      const auto begun = BootClock::now();
      if (dies) {  // nobody gives it back
        const auto now = BootClock::now();
        const auto left = lock.remaining();
        const auto ended = left > Duration{} ? now + left : begun;  // held up for so long it says nothing
        dead.add(lock.owner(), ended);
        static_cast<void>(lock.detach());
        trusted.add(begun, ended, options.permits);
        ++died;
        continue;
      }
      std::this_thread::sleep_for(60ms);  // a few renewals
      const auto ended = BootClock::now();
      CHECK(lock.valid());
      trusted.add(begun, ended, options.permits);
      CHECK(lock.release() == Released::freed);
      ++kept;
    }
  });
  reaps.request_stop();
  reaps.join();
  CHECK(died == 9);
  CHECK(kept == 27);
  CHECK(trusted.most() <= limit);
  CHECK(trusted.most() > 1);
  for (const auto& owner : dead.over()) database.admin().run(long_dead(owner));
  // Nothing of the dead is in the way of the next one.
  CHECK(answered([&] { return reaper.try_lock_for("gpu", far_longer(), permit({.permits = limit})); }));
}

TEST_CASE("the reaper frees the permits of one that has died, tells of it once, and leaves the others theirs") {
  Database database;
  for (const std::int64_t many : {1, 2}) {
    INFO(many);
    EventLog news;
    auto options = reaping();
    options.reaper.every = {};
    options.observer = news.observer();
    auto reaper = database.engine(options);
    auto engine = database.engine(), other = database.engine();
    auto dies = engine.lock("gpu", permit({.permits = many, .lease = 1h, .renew = false, .label = "dies"}));
    std::vector<Lock> alive;
    for (auto i = many; i < limit; ++i) alive.push_back(other.lock("gpu", permit({.lease = 1h, .renew = false})));
    CHECK_FALSE(other.try_lock("gpu", permit()));
    database.admin().run(long_dead(dies.owner()));
    for (int round = 0; round < 3; ++round) static_cast<void>(reaper.reap());
    CHECK(holders(database) == limit - many);
    REQUIRE(news.comes(Event::Kind::abandoned));
    CHECK(news.of(Event::Kind::abandoned).size() == 1);
    CHECK(news.of(Event::Kind::abandoned).front().name == "gpu");
    CHECK_MESSAGE(news.of(Event::Kind::abandoned).front().text.find("dies") != std::string::npos,
                  news.of(Event::Kind::abandoned).front().text);
    // Whatever it believed.
    CHECK(thrown_by([&] { dies.extend(1h); }).fault == Fault::lost);
    for (auto& lock : alive) {
      lock.extend(2h);
      CHECK(lock.valid());
    }
    std::vector<Lock> next;
    for (std::int64_t i = 0; i < many; ++i) {
      auto lock = other.try_lock("gpu", permit());
      REQUIRE(lock);
      next.push_back(std::move(*lock));
    }
    CHECK_FALSE(other.try_lock("gpu", permit()));
    CHECK(dies.release() == Released::was_lost);
    CHECK_FALSE(other.try_lock("gpu", permit()));
  }
}

TEST_CASE("who has a permit whose lease was over a moment ago keeps it beside the reaper, if it renews in time") {
  Database database;
  auto options = reaping();
  options.reaper.every = {};
  auto reaper = database.engine(options), engine = database.engine(), other = database.engine();
  auto late = engine.lock("gpu", permit({.permits = 2, .lease = 1h, .renew = false}));
  const auto beside = other.lock("gpu", permit());
  database.admin().run("UPDATE resource_lock_holder SET expires_at = acquired_at WHERE owner = '" + late.owner() + "'");
  for (int round = 0; round < 3; ++round) static_cast<void>(reaper.reap());
  late.extend(1h);
  CHECK(late.valid());
  CHECK_FALSE(other.try_lock("gpu", permit()));
  CHECK(late.release() == Released::freed);
}

TEST_CASE(
    "the name of permits is removed when all have been given back, and not before, and its tokens go on growing") {
  Database database;
  auto options = reaping();
  options.reaper.every = {};
  auto reaper = database.engine(options), engine = database.engine();
  auto lock = engine.lock("gpu", permit());
  const auto last = lock.token();
  database.admin().run("UPDATE resource_lock SET acquired_at = 1 WHERE name = 'gpu'");
  for (int round = 0; round < 5; ++round) static_cast<void>(reaper.reap());
  CHECK(database.admin().exists("gpu"));
  CHECK(lock.release() == Released::freed);
  CHECK(eventually([&] {
    static_cast<void>(reaper.reap());
    return !database.admin().exists("gpu");
  }));
  CHECK(engine.lock("gpu", permit()).token() > last);
}
