// Promises that busy is said where somebody holds the name, or has its row locked, and nowhere else: a table that is
// locked as a whole is a timeout which says what is in the way.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <future>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

const auto patience = 500ms * slowness();

// The whole table is locked by another session for as long as this lives.
class LockedTable {
 public:
  LockedTable(Database& database, const TableLock& how) : admin_(database.place()), how_(how) {
    for (const auto& sql : how.lock) admin_.run(sql);
  }
  ~LockedTable() { unlock(); }
  LockedTable(const LockedTable&) = delete;
  LockedTable& operator=(const LockedTable&) = delete;

  void unlock() {
    if (!std::exchange(locked_, false)) return;
    admin_.run(how_.unlock);
  }

 private:
  Admin admin_;
  const TableLock how_;
  bool locked_ = true;
};

// What `call` throws once the server had time for its connection and for an answer, which a crowd may take too long for.
template <class Call>
Thrown told_by(Call call) {
  Thrown thrown;
  eventually([&] {
    thrown = thrown_by(call);
    return thrown.fault != Fault::unavailable && !thrown.names("no answer in time") && !thrown.names("no greeting") &&
           !thrown.names("no connection to");
  });
  return thrown;
}

void check_says_what_is_in_the_way(const TableLock& how, const std::string& name, const Thrown& thrown,
                                   std::string_view call) {
  CHECK_MESSAGE(thrown.fault == Fault::timeout, call << ": " << thrown.text);
  CHECK_MESSAGE(thrown.names(how.told), call << ": " << thrown.text);
  CHECK_MESSAGE(thrown.names('"' + name + '"'), call << ": " << thrown.text);
}

}  // namespace

TEST_CASE("a table that is locked as a whole is a timeout that says so, never busy, however it is asked") {
  ServerDatabase database;
  auto engine = database->engine({.timeouts = {.request = patience}});
  engine.try_lock("old").reset();
  for (const auto& how : database.server().table_locks("resource_lock")) {
    CAPTURE(how.name);
    Caller caller(database->place());
    caller.begin(database->place().beginnings().front());
    {
      LockedTable locked(*database, how);
      for (const std::string name : {"old", "new"}) {
        CAPTURE(name);
        check_says_what_is_in_the_way(how, name, told_by([&] { engine.try_lock(name); }), "try_lock");
        check_says_what_is_in_the_way(how, name, told_by([&] { engine.try_lock_for(name, 0s); }), "try_lock_for 0");
        check_says_what_is_in_the_way(how, name, told_by([&] { engine.try_lock_for(name, 300ms); }), "try_lock_for");
      }
      check_says_what_is_in_the_way(
          how, "old", told_by([&] { engine.try_lock("old", {.reentrance = Reentrance::node}); }), "try_lock of a node");
      check_says_what_is_in_the_way(how, "new", told_by([&] { engine.try_lock_in(caller.native(), "new"); }),
                                    "try_lock_in");
      if (how.reads) CHECK(engine.wait_free("old", 300ms));
      else check_says_what_is_in_the_way(how, "old", told_by([&] { engine.wait_free("old", 300ms); }), "wait_free");
    }
    caller.run("ROLLBACK");
    CHECK(engine.try_lock("old").has_value());
  }
}

TEST_CASE("none of many who ask at the same time is told that a locked table is busy, nor are those in line behind") {
  ServerDatabase database;
  auto engine = database->engine({.connections = 1, .timeouts = {.request = patience}});
  engine.try_lock("old").reset();
  const auto how = database.server().table_locks("resource_lock").back();
  std::atomic<int> told{0};
  {
    LockedTable locked(*database, how);
    in_parallel(8, [&](int i) {
      const auto name = i % 2 == 0 ? std::string("old") : "new " + std::to_string(i);
      const auto thrown = thrown_by([&] { i < 4 ? engine.try_lock(name) : engine.try_lock_for(name, 500ms); });
      // Whose time was over while its request was under way together with others is in doubt; and where the one
      // connection has to be opened again, there may be too little left of somebody's time for that.
      const auto told_of = {Fault::timeout, Fault::in_doubt, Fault::unavailable};
      CHECK_MESSAGE(std::ranges::count(told_of, thrown.fault) == 1, i << ": " << thrown.text);
      ++told;
    });
  }
  CHECK(told.load() == 8);
}

TEST_CASE(
    "engines that look at the same moment why a name of a locked table cannot be had are not in each other's way") {
  ServerDatabase database;
  constexpr int engines = 8, rounds = 4;
  std::vector<Engine> all;
  for (int i = 0; i < engines; ++i)
    all.push_back(database->engine({.connections = 1, .timeouts = {.request = patience}}));
  all.front().try_lock("old").reset();
  for (const auto& how : database.server().table_locks("resource_lock")) {
    if (!how.reads) continue;
    CAPTURE(how.name);
    LockedTable locked(*database, how);
    for (int round = 0; round < rounds; ++round)
      in_parallel(engines, [&](int i) {
        auto& engine = all[static_cast<std::size_t>(i)];
        const auto thrown = told_by([&] { engine.try_lock_for("old", 100ms); });
        check_says_what_is_in_the_way(how, "old", thrown, "try_lock_for");
      });
  }
}

TEST_CASE("who waits gets the lock when the table is unlocked, and who only tries as well if that is soon") {
  ServerDatabase database;
  auto engine = database->engine({.timeouts = {.request = 20s}});
  engine.try_lock("job").reset();
  for (const auto& how : database.server().table_locks("resource_lock")) {
    CAPTURE(how.name);
    LockedTable locked(*database, how);
    auto waits = std::async(std::launch::async, [&] { return engine.try_lock_for("job", 30s).has_value(); });
    auto tries = std::async(std::launch::async, [&] { return engine.try_lock("another").has_value(); });
    CHECK(waits.wait_for(200ms) == std::future_status::timeout);
    CHECK(tries.wait_for(0s) == std::future_status::timeout);
    locked.unlock();
    CHECK(waits.get());
    CHECK(tries.get());
  }
}

TEST_CASE("a name that somebody holds is busy while its table is locked against writing") {
  ServerDatabase database;
  auto holder = database->engine();
  auto engine = database->engine({.timeouts = {.request = patience}});
  const auto held = holder.try_lock("job", {.lease = 1min});
  auto closed = holder.try_lock("closed", {.at_least = 1min});
  closed->release();
  for (const auto& how : database.server().table_locks("resource_lock")) {
    if (!how.reads) continue;
    CAPTURE(how.name);
    LockedTable locked(*database, how);
    for (const char* name : {"job", "closed"}) {
      CHECK_FALSE(engine.try_lock(name));
      CHECK_FALSE(engine.try_lock_for(name, 200ms));
    }
  }
}

TEST_CASE("a row that a transaction has locked is busy, whoever asks and however") {
  ServerDatabase database;
  auto engine = database->engine();
  engine.try_lock("job").reset();
  database->admin().block("job");
  const Stopwatch time;
  CHECK_FALSE(engine.try_lock("job"));
  CHECK_FALSE(engine.try_lock_for("job", 0s));
  CHECK_FALSE(engine.try_lock_for("job", 200ms));
  CHECK_FALSE(engine.try_lock("job", {.reentrance = Reentrance::node}));
  Caller caller(database->place());
  caller.begin(database->place().beginnings().front());
  CHECK_FALSE(engine.try_lock_in(caller.native(), "job"));
  CHECK(time.elapsed() < 5s * slowness());
  caller.run("ROLLBACK");
  database->admin().unblock();
}

TEST_CASE(
    "a row that a transaction only keeps from being written is busy, though others may read it with a lock of that "
    "kind") {
  ServerDatabase database;
  auto engine = database->engine();
  engine.try_lock("job").reset();
  Admin other(database.server());
  const auto keep = [&](const char* how) {  // each database knows one of the words at least
    other.run("BEGIN");
    try {
      return other.number("SELECT token FROM resource_lock WHERE name = 'job' " + std::string(how)) > 0;
    } catch (const std::exception&) {
      other.run("ROLLBACK");
      return false;
    }
  };
  REQUIRE((keep("FOR SHARE") || keep("LOCK IN SHARE MODE")));
  const Stopwatch time;
  CHECK_FALSE(engine.try_lock("job"));
  CHECK_FALSE(engine.try_lock_for("job", 200ms));
  CHECK(time.elapsed() < 5s * slowness());
  other.run("ROLLBACK");
  CHECK(engine.try_lock("job").has_value());
}

TEST_CASE(
    "a name whose row another transaction has inserted, and not committed, is a timeout: nobody is seen to hold it") {
  ServerDatabase database;
  auto engine = database->engine();
  Admin other(database.server());
  other.run("BEGIN");
  other.run("INSERT INTO resource_lock (name, token, expires_at) VALUES ('job', 1, 1)");
  for (const auto wait : {0ms, 100ms}) {
    const auto thrown = thrown_by([&] { engine.try_lock_for("job", wait); });
    CHECK_MESSAGE((thrown.fault == Fault::timeout && thrown.names("\"job\"") && thrown.names("nobody")), thrown.text);
  }
  other.run("ROLLBACK");
  CHECK(engine.try_lock("job").has_value());
}
