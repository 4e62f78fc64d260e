// The promise that the tokens of a name only grow, whatever happens to its row.
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <mutex>
#include <random>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// An engine whose reaper's two steps are a short while apart.
Engine quick_reaper(const Database& database) {
  return database.engine({.reaper = {.retention = 50ms, .grace = 50ms}});
}

// Runs rounds of the reaper until the row is gone.
bool reaped(Database& database, Engine& reaper, std::string_view name) {
  return eventually([&] {
    reaper.reap();
    return !database.admin().exists(name);
  });
}

}  // namespace

TEST_CASE("tokens grow through release") {
  Database database;
  auto engine = database.engine();
  Token last{};
  for (int i = 0; i < 5; ++i) {
    const auto lock = engine.try_lock("job");
    REQUIRE(lock);
    CHECK(lock->token() > last);
    last = lock->token();
  }
}

TEST_CASE("tokens grow through expiry and takeover") {
  Database database;
  auto engine = database.engine();
  Token last{};
  for (int i = 0; i < 5; ++i) {
    auto lock = engine.try_lock("job", {.renew = false});
    REQUIRE(lock);
    CHECK(lock->token() > last);
    last = lock->detach().token;
    database.admin().expire("job");
  }
  CHECK(engine.try_lock("job")->token() > last);
}

TEST_CASE("a forced release moves the token on, and the next grant is above it") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("job", {.renew = false});
  REQUIRE(lock);
  const auto before = lock->token();
  CHECK(engine.force_release("job", before));
  CHECK(database.admin().token("job") > before);
  CHECK(engine.try_lock("job")->token() > database.admin().floor());
  CHECK(database.admin().token("job") > Token{number(before) + 1});
  CHECK(lock->release() == Released::was_lost);
}

TEST_CASE("a forced release under a token that has moved on frees nothing") {
  Database database;
  auto engine = database.engine();
  const auto first = engine.try_lock("job")->token();
  const auto lock = engine.try_lock("job");
  REQUIRE(lock);
  CHECK_FALSE(engine.force_release("job", first));
  CHECK_FALSE(engine.force_release("job", Token{number(lock->token()) + 1}));
  CHECK_FALSE(engine.force_release("nobody has it", Token{1}));
  CHECK(database.admin().owner("job") == lock->owner());
}

TEST_CASE("a name that was removed by the reaper begins above every token it ever had") {
  Database database;
  auto reaper = quick_reaper(database);
  Token last{};
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) {
      const auto lock = reaper.try_lock("job");
      REQUIRE(lock);
      CHECK(lock->token() > last);
      last = lock->token();
    }
    database.admin().make_idle_for_days("job");
    REQUIRE(reaped(database, reaper, "job"));
    CHECK(database.admin().floor() >= last);
  }
  CHECK(reaper.try_lock("another name")->token() > last);
}

TEST_CASE("the reaper removes nothing before its second step, and not sooner than the grace after the first") {
  Database database;
  auto reaper = database.engine({.reaper = {.retention = 1h, .grace = 1h}});
  reaper.try_lock("job").reset();
  database.admin().make_idle_for_days("job");
  for (int round = 0; round < 3; ++round) CHECK(reaper.reap().removed == 0);
  CHECK(database.admin().exists("job"));
  CHECK(database.admin().floor() >= database.admin().token("job"));
}

TEST_CASE("the reaper leaves alone what came to life again between its steps, and what is too young") {
  Database database;
  auto reaper = quick_reaper(database);
  auto young_reaper = database.engine({.reaper = {.retention = 24h, .grace = 50ms}});
  reaper.try_lock("idle").reset();
  reaper.try_lock("revived").reset();
  database.admin().make_idle_for_days("idle");
  database.admin().make_idle_for_days("revived");
  reaper.reap();  // the first step: the floor is above both
  const auto revived = reaper.try_lock("revived");
  REQUIRE(revived);
  REQUIRE(reaped(database, reaper, "idle"));
  CHECK(database.admin().owner("revived") == revived->owner());
  young_reaper.try_lock("young").reset();
  for (int round = 0; round < 3; ++round) young_reaper.reap();
  CHECK(database.admin().exists("young"));
}

TEST_CASE("the reaper settles an abandoned lease once, and moves its token on") {
  Database database;
  auto first = database.engine();
  auto second = database.engine();
  auto lock = first.try_lock("job", {.renew = false});
  REQUIRE(lock);
  const auto token = lock->detach().token;
  database.admin().expire("job");
  std::array<std::size_t, 2> abandoned{};
  in_parallel(2, [&](int i) { abandoned[static_cast<std::size_t>(i)] = (i == 0 ? first : second).reap().abandoned; });
  CHECK(abandoned[0] + abandoned[1] == 1);
  CHECK(first.reap().abandoned == 0);
  CHECK(database.admin().token("job") > token);
  CHECK(database.admin().held() == 0);
}

TEST_CASE("the reaper removes no more rows at once than it is told to, and never the floor") {
  Database database;
  auto reaper = quick_reaper(database);
  for (const char* name : {"a", "b", "c"}) {
    reaper.try_lock(name).reset();
    database.admin().make_idle_for_days(name);
  }
  std::size_t removed = 0;
  CHECK(eventually([&] {
    const auto now = reaper.reap(2).removed;
    CHECK(now <= 2);
    return (removed += now) == 3;
  }));
  CHECK(database.admin().number("SELECT count(*) FROM resource_lock") == 1);
  CHECK(number(database.admin().floor()) > 0);
}

TEST_CASE("tokens grow while holders, thieves, forced releases and reapers are all at work") {
  Database database;
  auto engine = database.engine({.connections = 4, .reaper = {.retention = 50ms, .grace = 50ms}});
  constexpr int names = 3, enough = 10;
  std::array<std::mutex, names> guards;
  std::array<Token, names> last{};
  std::atomic<int> grants{0};
  const Stopwatch running;
  in_parallel(5, [&](int thread) {
    std::minstd_rand random(static_cast<unsigned>(thread));
    Admin admin(database.test_database());
    while (running.elapsed() < 3s || (grants <= enough && running.elapsed() < far_longer())) {
      const auto pick = random() % names;
      const auto name = "job " + std::to_string(pick);
      if (thread == 0) {
        admin.make_idle_for_days(name);
        engine.reap();
      } else if (thread == 1) {
        admin.expire(name);
      } else if (thread == 2) {
        free_by_force(engine, name);
      } else if (const auto lock = engine.try_lock_for(name, 10s)) {
        // Somebody may have taken it over by now: grants are compared in the order of their tokens' reading only while
        // this one is still in the row.
        const std::lock_guard guard(guards[pick]);
        if (admin.owner(name) != lock->owner()) continue;
        CHECK(lock->token() > last[pick]);
        last[pick] = lock->token();
        ++grants;
      }
    }
  });
  CHECK(grants > enough);
}
