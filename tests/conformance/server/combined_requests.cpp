// The promise that requests which have to wait for a connection are fewer than those who asked, that a
// locked row or a broken connection on the way harms nobody, and that each caller's deadline is its own.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

constexpr int threads = 32;

std::string job(int i) { return "job " + std::to_string(i); }

// An engine on one connection, which goes through a proxy.
struct Crowd {
  ServerDatabase database{};
  Proxy proxy{database.server()};
  Engine engine;
  std::vector<std::optional<Lock>> locks = std::vector<std::optional<Lock>>(threads);

  explicit Crowd(unsigned combine = EngineOptions{}.combine)
      : engine(database.server().url_at(proxy.address()),
               {.connections = 1,
                .timeouts = {.request = 20s * slowness(), .release = 20s * slowness()},
                .combine = combine}) {
    engine.try_lock("warm").reset();
  }

  std::optional<Lock>& lock(int i) { return locks[static_cast<std::size_t>(i)]; }
  void acquire() {
    in_parallel(threads, [&](int i) { lock(i) = engine.try_lock(job(i), {.renew = false}); });
  }
  void release() {
    in_parallel(threads, [&](int i) { CHECK(lock(i)->release() == Released::freed); });
  }
  void check_that_all_are_held() {
    for (int i = 0; i < threads; ++i) {
      REQUIRE(lock(i));
      CHECK(database->admin().owner(job(i)) == lock(i)->owner());
      CHECK(database->admin().token(job(i)) == lock(i)->token());
    }
  }
  template <class Work>
  std::size_t requests(Work work) {
    const auto before = proxy.requests();
    work();
    return proxy.requests() - before;
  }
};

}  // namespace

TEST_CASE("while one request is on its way, those that wait leave together in the next") {
  Crowd crowd;
  CHECK(eventually([&] {
    const auto acquires = crowd.requests([&] { crowd.acquire(); });
    crowd.check_that_all_are_held();
    const auto releases = crowd.requests([&] { crowd.release(); });
    return acquires < threads / 2 && releases < threads / 2;
  }));
}

TEST_CASE("with combine = 1 every request leaves alone") {
  Crowd crowd(1);
  CHECK(crowd.requests([&] { crowd.acquire(); }) == threads);
  crowd.check_that_all_are_held();
  CHECK(crowd.requests([&] { crowd.release(); }) == threads);
}

TEST_CASE("a row that is locked elsewhere delays none of those who travel with its name") {
  Crowd crowd;
  crowd.acquire();
  crowd.release();
  crowd.database->admin().block(job(5));
  for (int round = 0; round < 3; ++round) {
    crowd.acquire();
    for (int i = 0; i < threads; ++i) CHECK(crowd.lock(i).has_value() == (i != 5));
    in_parallel(threads, [&](int i) {
      if (i != 5) CHECK(crowd.lock(i)->release() == Released::freed);
    });
  }
  crowd.database->admin().unblock();
  crowd.acquire();
  crowd.check_that_all_are_held();
  crowd.database->admin().block(job(5));
  std::jthread patient([&] { CHECK(crowd.lock(5)->release() == Released::freed); });
  in_parallel(threads, [&](int i) {
    if (i != 5) CHECK(crowd.lock(i)->release() == Released::freed);
  });
  crowd.database->admin().unblock();
}

TEST_CASE("an answer that is lost is resolved for each of those who waited for it") {
  Crowd crowd;
  for (int round = 0; round < 3; ++round) {
    crowd.proxy.lose_next_answer();
    crowd.acquire();
    CHECK(crowd.proxy.lost_it());
    crowd.check_that_all_are_held();
    crowd.proxy.lose_next_answer();
    crowd.release();
    CHECK(crowd.proxy.lost_it());
    CHECK(crowd.database->admin().held() == 0);
  }
}

TEST_CASE("a request of many that never reached the database is asked again by each") {
  Crowd crowd;
  for (int round = 0; round < 3; ++round) {
    crowd.proxy.lose_next_request();
    crowd.acquire();
    CHECK(crowd.proxy.lost_it());
    crowd.check_that_all_are_held();
    crowd.proxy.lose_next_request();
    crowd.release();
    CHECK(crowd.proxy.lost_it());
    CHECK(crowd.database->admin().held() == 0);
  }
}

TEST_CASE("connections that end again and again leave nothing held that nobody knows") {
  Crowd crowd;
  for (int round = 0; round < 3; ++round) {
    std::jthread cutter([&](const std::stop_token& stop) {
      for (int i = 0; i < 5 && !stop.stop_requested(); ++i) {
        const auto before = crowd.proxy.requests();
        eventually([&] { return crowd.proxy.requests() > before || stop.stop_requested(); });
        crowd.proxy.cut();
      }
    });
    crowd.acquire();
    cutter.request_stop();
    cutter.join();
    crowd.check_that_all_are_held();
    crowd.release();
    CHECK(crowd.database->admin().held() == 0);
  }
}

TEST_CASE("names that were freed before travel in one request, though another row of a small table is locked") {
  Crowd crowd;
  std::vector<std::string> names;
  for (int i = 10; i < 40; ++i) names.push_back(job(i));
  for (int round = 0; round < 3; ++round) crowd.engine.try_lock_all(names)->release();
  crowd.database->admin().run("INSERT INTO resource_lock (name, token) VALUES ('another', 1)");
  crowd.database->admin().block("another");
  CHECK(eventually([&] {
    std::optional<LockSet> all;
    const auto acquires = crowd.requests([&] { all = crowd.engine.try_lock_all(names); });
    REQUIRE(all);
    const auto releases = crowd.requests([&] { CHECK(all->release() == Released::freed); });
    return acquires == 2 && releases == 1;  // a look at all of them comes first
  }));
  crowd.database->admin().unblock();
}

TEST_CASE("who waits for a connection that does not answer is back by its own deadline") {
  ServerDatabase database;
  Proxy proxy(database.server());
  const auto table = open_table(database.server().url_at(proxy.address()), 1);
  const auto acquire = [&](const char* text, int number, Deadline deadline) {
    const Name name(text);
    const auto owner = identity(number);
    const store::AcquireRequest ask{name, owner, "node", "label", owner, 1h, {}, "meta"};
    return table->acquire(ask, deadline).token.has_value();
  };
  REQUIRE(acquire("warm", 4, soon()));
  const auto before = proxy.requests();
  proxy.swallow_answers();
  std::jthread flying([&] { CHECK_THROWS_AS(acquire("flying", 1, later(BootClock::now(), 5min)), Failure); });
  REQUIRE(eventually([&] { return proxy.requests() > before && database->admin().owner("flying") == identity(1); }));
  std::jthread patient([&] { CHECK(acquire("patient", 2, later(BootClock::now(), 5min))); });
  for (int i = 0; i < 3; ++i) {
    const auto deadline = later(BootClock::now(), 100ms);
    try {
      acquire("brief", 3, deadline);
      FAIL_CHECK("nobody can have answered");
    } catch (const Failure& failure) {
      CHECK(failure.cause() == Cause::timed_out);
      CHECK_FALSE(failure.may_have_run());
    }
    CHECK(BootClock::now() >= deadline);
    CHECK(BootClock::now() < later(deadline, 5s * slowness()));
  }
  proxy.pass();
  proxy.cut();
  flying.join();
  patient.join();
  CHECK(database->admin().owner("brief").empty());
  database->admin().run("UPDATE resource_lock SET owner = NULL WHERE name <> ''");
}

// On MariaDB one statement frees what it can, another one tells what that was, and a third is for the rest.
TEST_CASE("what was freed with others and taken by somebody else at once was not lost") {
  if (std::getenv("DLOCK_TEST_COMBINE") != nullptr) return;  // where there are batches
  ServerDatabase database;
  Proxy proxy(database.server());
  const auto table = open_table(database.server().url_at(proxy.address()), 1);
  const Name good("good"), lost("lost"), old("old");
  const auto acquire = [&](const Name& name, int number) {
    const auto owner = identity(number);
    return *table->acquire({name, owner, "node", "label", owner, 1h, {}, "meta"}, soon()).token;
  };
  const bool in_two = database->admin().text("SELECT version()").find("MariaDB") != std::string::npos;
  bool seen_between = false;
  for (int round = 1; round <= 20 && !seen_between; ++round) {
    const std::string owners[] = {identity(10 * round), identity(10 * round + 1), identity(10 * round + 2)};
    const auto stranger = identity(10 * round + 3);
    const std::vector<store::LeaseKey> keys{{"good", owners[0], acquire(good, 10 * round)},
                                            {"lost", owners[1], acquire(lost, 10 * round + 1)},
                                            {"old", owners[2], acquire(old, 10 * round + 2)}};
    const auto take = [&](const std::string& name) {
      database->admin().run("UPDATE resource_lock SET token = token + 1, owner = '" + stranger + "', actor = '" +
                            stranger + "' WHERE name = '" + name + "' AND owner IS NULL");
    };
    database->admin().run("UPDATE resource_lock SET owner = NULL WHERE name = 'lost'");
    take("lost");
    REQUIRE(table->release(keys[2], soon()));  // the answer of which was lost, say
    proxy.delay(50ms);
    std::vector<std::optional<bool>> freed;
    const auto before = proxy.requests();
    std::size_t until_taken = 0;
    std::jthread releasing([&] { freed = table->release_together(keys, soon()); });
    REQUIRE(eventually([&] { return database->admin().owner("good").empty(); }));
    take("good");
    until_taken = proxy.requests() - before;
    releasing.join();
    proxy.pass();
    REQUIRE(freed.size() == 3);
    CHECK(freed[0] == true);
    CHECK(freed[1] == false);
    if (in_two) CHECK(freed[2] == true);  // elsewhere only who has freed it is told so
    CHECK(database->admin().owner("good") == stranger);
    database->admin().run("UPDATE resource_lock SET owner = NULL WHERE name <> ''");
    seen_between = until_taken < proxy.requests() - before;
    if (!in_two) break;
  }
  CHECK(seen_between == in_two);
}

TEST_CASE("a row that is locked elsewhere delays no release beside it, also where nothing is prepared") {
  if (std::getenv("DLOCK_TEST_COMBINE") != nullptr) return;  // where there are batches
  for (const char* prepared : {"", "?prepared=off"}) {
    CAPTURE(prepared);
    ServerDatabase database;
    const auto table = open_table(database->url() + prepared, 1);
    const auto owner = identity(1);
    std::vector<store::LeaseKey> keys;
    for (const char* name : {"a", "b", "c"})
      keys.push_back(
          {name, owner, *table->acquire({Name(name), owner, "node", "label", owner, 1h, {}, ""}, soon()).token});
    database->admin().block("b");
    const Stopwatch time;
    const auto freed = table->release_together(keys, later(BootClock::now(), 5min));
    CHECK(time.elapsed() < 2s * slowness());
    CHECK(freed == std::vector<std::optional<bool>>{true, std::nullopt, true});
    database->admin().unblock();
    CHECK(table->release(keys[1], soon()));
  }
}

// On MariaDB the batch begins with an update that grants what is free; what its owner had before makes that answer one
// that is not believed, and what is too long for the table makes the rest of it fail.
TEST_CASE(
    "who leads a batch and heard of a release is granted the name, also where the batch has granted it and failed") {
  if (std::getenv("DLOCK_TEST_COMBINE") != nullptr) return;  // where there are batches
  ServerDatabase database;
  const auto table = open_table(database.server().url_to_hold_writes(), 1);
  const std::string too_long(5000, 'x');
  const auto ask = [&](const char* text, int number, bool freed, std::string_view metadata) {
    const Name name(text);
    const auto owner = identity(number);
    store::AcquireRequest request{name, owner, "node", "label", owner, 1h, {}, metadata};
    request.freed = freed;
    return table->acquire(request, soon());
  };
  for (const char* name : {"again", "freed"})
    for (int i = 0; i < 3; ++i) {
      const auto token = ask(name, 10 + i, false, "").token;
      REQUIRE(token);
      REQUIRE(table->release({name, identity(10 + i), *token}, soon()));
    }
  const auto again = ask("again", 1, false, "").token;
  REQUIRE(again);
  // It has the connection until the others are there, and leaves it open: who leads takes nobody along to a new one.
  database.server().hold_writes("resource_lock", "INSERT");
  std::jthread before([&] { CHECK(ask("before", 4, false, "").token); });
  REQUIRE(eventually([&] { return database.server().holding_back(); }));
  std::jthread leader([&] { CHECK(ask("freed", 2, true, "").token == Token{4}); });
  REQUIRE(eventually([&] { return table->traffic().waiting == 1; }));
  const auto batches = table->traffic().batches, batched = table->traffic().batched;
  std::vector<std::jthread> others;
  others.emplace_back([&] { CHECK(ask("again", 1, false, "").token == again); });
  others.emplace_back([&] { CHECK_THROWS_AS(ask("bad", 3, false, too_long), Failure); });
  REQUIRE(eventually([&] { return table->traffic().in_flight == 4; }));
  database.server().let_go();
  before.join();
  leader.join();
  others.clear();
  CHECK(table->traffic().batches == batches + 1);
  CHECK(table->traffic().batched == batched + 3);  // with who leads
  CHECK(database->admin().owner("freed") == identity(2));
  database->admin().run("UPDATE resource_lock SET owner = NULL WHERE name <> ''");
}
