// Promises that busy is said where somebody holds the name, or has its row locked, and nowhere else: a table that is
// locked as a whole is a timeout which says what is in the way.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <functional>
#include <future>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// MySQL counts its waits in whole seconds, and begins one late; what is in the way is asked after that.
const auto patience = std::max<std::chrono::milliseconds>(500ms * slowness(), 3s);

// The whole table is locked by another session for as long as this lives.
class LockedTable {
 public:
  // `then`: what that session does besides, if it can.
  LockedTable(Database& database, const TableLock& how, const std::string& then = {})
      : admin_(database.test_database()), how_(how) {
    for (const auto& sql : how.lock) admin_.run(sql);
    try {
      if (!then.empty()) admin_.run(then);
    } catch (const std::exception&) {  // what keeps everybody from writing may keep this session from it, too
    }
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

// What `call` throws once the server had time for its connection and for an answer, which a crowd may take too long
// for.
template <class Call>
Thrown told_by(Call call) {
  Thrown thrown;
  eventually([&] {
    thrown = thrown_by(call);
    return thrown.fault != Fault::unavailable && !thrown.names("no answer in time") && !thrown.names("no greeting") &&
           !thrown.names("no connection to") && !thrown.names("no time left to ask");
  });
  return thrown;
}

// Ways to ask for a name, each by an engine of its own, and all at the same time: each takes its whole patience.
class Ways {
 public:
  explicit Ways(ServerDatabase& database) : database_(database) {}

  void add(std::string name, std::string call, std::function<void(Engine&, const std::string&)> ask) {
    ways_.push_back({std::move(name), std::move(call), std::move(ask)});
    engines_.push_back(database_->engine({.timeouts = {.request = patience}}));
  }
  void try_all(const std::string& name, const LockOptions& options, const std::string& in_mode) {
    add(name, "try_lock" + in_mode, [=](Engine& engine, const auto& asked) { engine.try_lock(asked, options); });
    for (const auto wait : {0ms, 300ms})
      add(name, "try_lock_for " + std::to_string(wait.count()) + in_mode,
          [=](Engine& engine, const auto& asked) { engine.try_lock_for(asked, wait, options); });
  }
  void check_told_what_is_in_the_way(const TableLock& how, const std::string& table = "resource_lock") {
    in_parallel(static_cast<int>(ways_.size()), [&](int i) {
      const auto& way = ways_[static_cast<std::size_t>(i)];
      const auto thrown = told_by([&] { way.ask(engines_[static_cast<std::size_t>(i)], way.name); });
      CHECK_MESSAGE(thrown.fault == Fault::timeout, how.name << ", " << way.call << ": " << thrown.text);
      CHECK_MESSAGE(thrown.names(how.told), how.name << ", " << way.call << ": " << thrown.text);
      CHECK_MESSAGE(names_table(thrown.text, table), how.name << ", " << way.call << ": " << thrown.text);
      CHECK_MESSAGE(thrown.names('"' + way.name + '"'), how.name << ", " << way.call << ": " << thrown.text);
    });
  }

 private:
  // And not one whose name begins so.
  static bool names_table(const std::string& text, const std::string& table) {
    const auto at = text.find('.' + table);
    if (at == std::string::npos) return false;
    const auto end = at + 1 + table.size();
    return end == text.size() || (text[end] != '_' && std::isalnum(static_cast<unsigned char>(text[end])) == 0);
  }

  struct Way {
    std::string name, call;
    std::function<void(Engine&, const std::string&)> ask;
  };

  ServerDatabase& database_;
  std::vector<Way> ways_{};
  std::vector<Engine> engines_{};
};

}  // namespace

TEST_CASE("a table that is locked as a whole is a timeout that says so, never busy, however it is asked") {
  ServerDatabase database;
  auto engine = database->engine({.timeouts = {.request = patience}});
  engine.try_lock("old").reset();
  for (const auto& how : database.server().table_locks("resource_lock")) {
    CAPTURE(how.name);
    Caller caller(database->test_database());
    caller.begin(database->test_database().beginnings().front());
    Ways ways(database);
    for (const char* name : {"old", "new"}) ways.try_all(name, {}, "");
    ways.add("old", "try_lock of a node",
             [](Engine& asked, const auto& name) { asked.try_lock(name, {.reentrance = Reentrance::node}); });
    ways.add("new", "try_lock_in", [&](Engine& asked, const auto& name) { asked.try_lock_in(caller.native(), name); });
    if (!how.reads) ways.add("old", "wait_free", [](Engine& asked, const auto& name) { asked.wait_free(name, 300ms); });
    {
      LockedTable locked(*database, how);
      ways.check_told_what_is_in_the_way(how);
      if (how.reads) CHECK(engine.wait_free("old", 300ms));
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
        CHECK_MESSAGE((thrown.fault == Fault::timeout && thrown.names(how.told) && thrown.names("\"old\"")),
                      thrown.text);
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

TEST_CASE("who would share a name with others is told that its table is locked, and never that they keep it out") {
  ServerDatabase database;
  auto holder = database->engine();
  auto engine = database->engine({.timeouts = {.request = patience}});
  const LockOptions read{.mode = Mode::shared, .lease = 1min}, slot{.mode = Mode::permits, .limit = 2, .lease = 1min};
  const auto reader = holder.lock("read", read), permit = holder.lock("slots", slot);
  auto both = slot;
  both.permits = 2;
  for (const auto& how : database.server().table_locks("resource_lock")) {
    if (!how.reads) continue;
    CAPTURE(how.name);
    Ways ways(database);
    ways.try_all("read", read, ", to read");
    ways.try_all("slots", slot, ", for a permit");
    LockedTable locked(*database, how);
    ways.check_told_what_is_in_the_way(how);
    CHECK_FALSE(engine.try_lock("read"));
    CHECK_FALSE(engine.try_lock("slots", both));
  }
  CHECK(engine.try_lock("read", read));
  CHECK(engine.try_lock("slots", slot));
}

// On MySQL and MariaDB nobody has both: who would lock the table waits for the transaction that has a row of it.
TEST_CASE("whoever has locked the table is named, also where a row of it is locked as well") {
  ServerDatabase database;
  auto holder = database->engine();
  auto engine = database->engine({.timeouts = {.request = patience}});
  engine.try_lock("old").reset();
  const LockOptions read{.mode = Mode::shared, .lease = 1min};
  const auto reader = holder.lock("read", read);
  for (const auto& how : database.server().table_locks("resource_lock")) {
    CAPTURE(how.name);
    Ways ways(database);
    for (const char* name : {"old", "read"}) {
      const bool shares = name == std::string("read");
      const auto options = shares ? read : LockOptions{};
      ways.add(name, "try_lock", [=](Engine& asked, const auto& its) { asked.try_lock(its, options); });
      ways.add(name, "try_lock_for", [=](Engine& asked, const auto& its) { asked.try_lock_for(its, 50ms, options); });
    }
    LockedTable locked(*database, how, "SELECT token FROM resource_lock WHERE name IN ('old', 'read') FOR UPDATE");
    ways.check_told_what_is_in_the_way(how);
  }
}

TEST_CASE("who would share a name is told that the table of the holders is locked, also where others ask just then") {
  ServerDatabase database;
  auto holder = database->engine();
  auto engine = database->engine({.timeouts = {.request = patience}});
  const LockOptions read{.mode = Mode::shared, .lease = 1min}, slot{.mode = Mode::permits, .limit = 9, .lease = 1min};
  const auto reader = holder.lock("read", read), permit = holder.lock("slots", slot);
  engine.try_lock("old").reset();
  for (const auto& how : database.server().table_locks("resource_lock_holder")) {
    CAPTURE(how.name);
    Ways ways(database);
    ways.try_all("read", read, ", to read");
    ways.try_all("slots", slot, ", for a permit");
    ways.try_all("old", read, ", to read what nobody holds");
    LockedTable locked(*database, how);
    ways.check_told_what_is_in_the_way(how, "resource_lock_holder");
    CHECK(engine.try_lock("old").has_value());
  }
  CHECK(engine.try_lock("read", read));
}

TEST_CASE("who opens a table that is locked as a whole waits for it, and is told what is in the way") {
  ServerDatabase database;
  for (const char* table : {"resource_lock", "resource_lock_holder", "resource_lock_waiter"})
    for (const auto& how : database.server().table_locks(table)) {
      if (how.reads) continue;
      CAPTURE(std::string(table));
      CAPTURE(how.name);
      LockedTable locked(*database, how);
      const auto open = [&](std::chrono::seconds patience_to_open) {
        auto engine = database->engine({.timeouts = {.connect = patience_to_open * slowness()}});
        return engine.try_lock("job").has_value();
      };
      Thrown thrown;
      const auto is_told = [&] {
        thrown = told_by([&] { open(3s); });
        return thrown.fault == Fault::timeout && thrown.names(how.told) && thrown.names(table);
      };
      CHECK_MESSAGE(eventually(is_told), thrown.text);  // in a crowd the answer to a look may be late
      auto opens = std::async(std::launch::async, [&] { return open(30s); });
      CHECK(opens.wait_for(200ms) == std::future_status::timeout);
      locked.unlock();
      CHECK(opens.get());
    }
}

TEST_CASE("a row that a transaction has locked is busy, whoever asks and however") {
  ServerDatabase database;
  auto engine = database->engine();
  engine.try_lock("job").reset();
  database->admin().block("job");
  const Stopwatch time;
  CHECK_FALSE(engine.try_lock("job"));
  CHECK_FALSE(answered([&] { return engine.try_lock_for("job", 0s); }));
  CHECK_FALSE(answered([&] { return engine.try_lock_for("job", 200ms); }));
  CHECK_FALSE(engine.try_lock("job", {.reentrance = Reentrance::node}));
  Caller caller(database->test_database());
  caller.begin(database->test_database().beginnings().front());
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
  CHECK_FALSE(answered([&] { return engine.try_lock_for("job", 200ms); }));
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
    const auto thrown = told_by([&] { engine.try_lock_for("job", wait); });
    CHECK_MESSAGE((thrown.fault == Fault::timeout && thrown.names("\"job\"") && thrown.names("nobody")), thrown.text);
  }
  other.run("ROLLBACK");
  CHECK(engine.try_lock("job").has_value());
}
