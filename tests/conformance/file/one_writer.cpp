// What a database of one file with one writer promises in the place of a server: no second acquire
// comes between the reading of a token and the insert, and the file may be away, or no database, or told to forget.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

#include <filesystem>
#include <future>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("an acquire reads the floor only when it is the one writer, so that no token can be drawn too early") {
  Database database;
  auto engine = database.engine();
  engine.try_lock("warm").reset();
  database.admin().run(database.test_database().begin_writing());
  auto acquire = std::async(std::launch::async, [&] { return engine.try_lock_for("job", 2min)->token(); });
  CHECK(acquire.wait_for(100ms) == std::future_status::timeout);
  database.admin().run("UPDATE resource_lock SET token = token + 1000 WHERE name = ''");
  database.admin().run("COMMIT");
  CHECK(acquire.get() > database.admin().floor());
}

TEST_CASE("a grant is durable before it is answered, without anybody reading on") {
  Database database;
  auto engine = database.engine();
  const auto lock = engine.try_lock("job");
  REQUIRE(lock);
  CHECK(Admin(database.test_database()).owner("job") == lock->owner());
}

TEST_CASE("a file that is not there is an error that names it, and opening an engine makes none") {
  const auto test_database = opener().test_database();
  const auto nowhere = thrown_by([&] { Engine engine(test_database->url() + ".d/not/there.db"); });
  CHECK_MESSAGE((nowhere.fault == Fault::unavailable || nowhere.fault == Fault::misuse), nowhere.text);
  CHECK_MESSAGE(nowhere.names("there.db"), nowhere.text);
  const auto url = test_database->url() + ".new";
  const auto missing = thrown_by([&] { Engine engine(url); });
  CHECK_MESSAGE((missing.fault == Fault::unavailable || missing.fault == Fault::schema), missing.text);
  CHECK_MESSAGE((missing.names(".new") || missing.names("dlock-migrate up")), missing.text);
  CHECK_FALSE(std::filesystem::exists(url.substr(url.find(':') + 1)));
}

TEST_CASE("a database that is told to forget is said to be, by the setting's name") {
  Database database;
  const auto warnings = [&](const std::string& option) {
    EventLog news;
    { Engine engine(database.url() + option, {.observer = news.observer()}); }
    return news.of(Event::Kind::weak_durability);
  };
  CHECK(warnings("").empty());
  REQUIRE(warnings("?synchronous=off").size() == 1);
  CHECK(warnings("?synchronous=off").front().text.find("synchronous") != std::string::npos);
}

TEST_CASE("a file that is no database is an error") {
  const auto test_database = opener().test_database();
  const auto thrown = thrown_by([&] { Engine engine(std::string(opener().name) + ":/etc/passwd"); });
  CHECK(thrown.fault);
}

TEST_CASE("while somebody else writes the file nobody is told that a name which nobody holds is busy") {
  Database database;
  auto engine = database.engine({.timeouts = {.request = 700ms}});
  auto holder = database.engine();
  engine.try_lock("old").reset();
  const auto held = holder.try_lock("held", {.lease = 10min});
  auto closed = holder.try_lock("closed", {.at_least = 10min});
  closed->release();
  database.admin().run(database.test_database().begin_writing());
  const auto says_so = [](const Thrown& thrown) {
    CHECK_MESSAGE(thrown.fault == Fault::timeout, thrown.text);
    CHECK_MESSAGE(thrown.names("another connection is writing"), thrown.text);
  };
  for (const std::string name : {"old", "new"}) {
    says_so(thrown_by([&] { engine.try_lock(name); }));
    says_so(thrown_by([&] { engine.try_lock_for(name, 0s); }));
    says_so(thrown_by([&] { engine.try_lock_for(name, 300ms); }));
    says_so(thrown_by([&] { engine.try_lock(name, {.reentrance = Reentrance::node}); }));
    CHECK(engine.wait_free(name, 0s));
  }
  Caller caller(database.test_database());
  caller.run("BEGIN");
  says_so(thrown_by([&] { engine.try_lock_in(caller.native(), "old"); }));
  caller.run("ROLLBACK");
  for (const char* name : {"held", "closed"}) {
    CHECK_FALSE(engine.try_lock(name));
    CHECK_FALSE(engine.try_lock_for(name, 300ms));
    CHECK_FALSE(engine.wait_free(name, 0s));
  }
  database.admin().run("COMMIT");
  CHECK(engine.try_lock("old").has_value());
}

TEST_CASE("a file that another program has for itself alone cannot be opened, which is no other migrator's doing") {
  const auto test_database = opener().test_database();
  Admin admin(*test_database);
  admin.run("PRAGMA journal_mode = DELETE");
  admin.run("CREATE TABLE theirs (id INTEGER)");
  admin.run("BEGIN EXCLUSIVE");
  for (const bool dry_run : {false, true}) {
    CAPTURE(dry_run);
    schema::Options options;
    options.timeouts.connect = 100ms;
    options.timeouts.lock = 0ms;
    options.dry_run = dry_run;
    const auto report = schema::baseline(test_database->url(), 1, options);
    CHECK(report.state == schema::SchemaState::locked);
    CHECK_MESSAGE(report.message.find("another connection is writing") != std::string::npos, report.message);
  }
  admin.run("COMMIT");
}
