// Tests that the row of one name can be removed, while nobody uses it, and that its tokens grow all the same.
#include "store/waiter_table.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// Removes the name on a thread of its own, and goes on once the floor is raised: in the grace.
std::future<Removal> in_the_grace(Database& database, Engine& engine, std::string_view name) {
  const auto token = database.admin().token(name);
  auto removal = std::async(std::launch::async, [&engine, name] { return engine.remove(name); });
  REQUIRE(eventually([&] { return database.admin().floor() >= token; }));
  return removal;
}

}  // namespace

TEST_CASE("a free name is removed, not sooner than the grace, and its next token is larger") {
  Database database;
  auto engine = database.engine({.reaper = {.grace = 200ms}});
  for (int i = 0; i < 5; ++i) engine.try_lock("job").reset();
  engine.try_lock("other").reset();
  const auto last = database.admin().token("job");
  const Stopwatch time;
  CHECK(engine.remove("job") == Removal::removed);
  CHECK(time.elapsed() >= 200ms);
  CHECK_FALSE(engine.inspect("job"));
  CHECK(database.admin().floor() == last);
  CHECK(database.admin().exists("other"));
  CHECK(engine.try_lock("job")->token() > last);
  CHECK(engine.try_lock("other")->token() > last);  // the floor is one for all
}

TEST_CASE("what is not there, not a name, or in use is told at once, and nothing is written") {
  Database database;
  auto engine = database.engine();  // with a grace of a minute
  Holder row;
  CHECK(engine.remove("job", &row) == Removal::absent);
  CHECK(row.name.empty());
  CHECK(thrown_by([&] { engine.remove(""); }).fault == Fault::misuse);
  const auto in_use = [&](State state) {
    const auto before = database.admin().row("job");
    const auto floor = database.admin().floor();
    CHECK(engine.remove("job", &row) == Removal::in_use);
    CHECK(row.state == state);
    CHECK(row.name == "job");
    CHECK(database.admin().row("job") == before);
    CHECK(database.admin().floor() == floor);
  };
  auto lock = engine.try_lock("job", {.at_least = 1h, .renew = false, .label = "holder"});
  REQUIRE(lock);
  in_use(State::held);
  CHECK(row.label == "holder");
  lock->release();
  in_use(State::closed);
  database.admin().age("job", 2h);
  engine.try_lock("job", {.renew = false})->detach();
  database.admin().expire("job");
  in_use(State::expired);  // nobody was told of it yet
  CHECK(engine.reap().abandoned == 1);
  CHECK(engine.inspect("job")->state == State::free);
}

TEST_CASE("a free name that somebody waits for, or has said to, stays") {
  Database database;
  auto engine = database.engine({.reaper = {.grace = 20ms}});
  engine.try_lock("job").reset();
  const auto table = database.table();
  const auto soon = [] { return later(BootClock::now(), 1min); };
  table->waiting().want("job", 1h, soon());
  Holder row;
  CHECK(engine.remove("job", &row) == Removal::wanted);
  CHECK(row.state == State::free);
  CHECK(database.admin().exists("job"));
  database.admin().run("UPDATE resource_lock SET wanted_until = 0 WHERE name = 'job'");
  CHECK(engine.remove("job") == Removal::removed);
}

TEST_CASE("a name that is taken while the grace runs stays, though it is free again") {
  Database database;
  auto engine = database.engine({.reaper = {.grace = 3s * slowness()}});
  auto other = database.engine();
  other.try_lock("job").reset();
  auto removal = in_the_grace(database, engine, "job");
  const auto token = other.try_lock("job")->token();
  CHECK(removal.get() == Removal::in_use);
  CHECK(database.admin().token("job") == token);
  CHECK(other.try_lock("job")->token() > token);
}

TEST_CASE("a removal that is stopped has removed nothing") {
  Database database;
  auto engine = database.engine();
  engine.try_lock("job").reset();
  const auto before = database.admin().row("job");
  std::stop_source source;
  auto removal = std::async(std::launch::async, [&] { return engine.remove("job", nullptr, source.get_token()); });
  CHECK(eventually([&] { return database.admin().floor() == database.admin().token("job"); }));
  source.request_stop();
  CHECK(removal.get() == Removal::stopped);
  CHECK(database.admin().row("job") == before);
  CHECK(engine.try_lock("job")->token() > database.admin().floor());
}

TEST_CASE("whoever removes and acquires the same name at once: tokens grow, and one at a time holds it") {
  Database database;
  constexpr int lockers = 3, removers = 2, rounds = 12;
  std::vector<Engine> engines;
  for (int i = 0; i < lockers + removers; ++i) engines.push_back(database.engine({.reaper = {.grace = 10ms}}));
  std::vector<std::int64_t> tokens;  // unguarded but by the lock itself
  std::atomic<int> removed{0}, holding{0}, clashes{0};
  for (int round = 0; round < rounds; ++round)
    in_parallel(lockers + removers, [&](int i) {
      auto& engine = engines[static_cast<std::size_t>(i)];
      if (i >= lockers) {
        removed += engine.remove("job") == Removal::removed ? 1 : 0;
        return;
      }
      const auto lock = engine.lock("job");
      if (++holding > 1) ++clashes;
      tokens.push_back(number(lock.token()));
      --holding;
    });
  database.admin().run("UPDATE resource_lock SET wanted_until = 0 WHERE name = 'job'");
  removed += engines.front().remove("job") == Removal::removed ? 1 : 0;
  CHECK(removed > 0);
  const auto lock = engines.back().lock("job");
  tokens.push_back(number(lock.token()));
  CHECK(clashes == 0);
  REQUIRE(tokens.size() == lockers * rounds + 1);
  for (std::size_t i = 1; i < tokens.size(); ++i) CHECK(tokens[i] > tokens[i - 1]);
}
