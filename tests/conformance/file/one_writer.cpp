// This file knows what a database of one file with one writer promises in the place of a server: no second acquire
// comes between the reading of a token and the insert, and the file may be away, or no database, or told to forget.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/news.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <future>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("an acquire reads the floor only when it is the one writer, so that no token can be drawn too early") {
  Database database;
  auto engine = database.engine();
  engine.try_lock("warm").reset();
  database.admin().run(database.place().begin_writing());
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
  CHECK(Admin(database.place()).owner("job") == lock->owner());
}

TEST_CASE("a file that is not there is an error that names it, and opening an engine makes none") {
  const auto place = opener().place();
  const auto nowhere = thrown_by([&] { Engine engine(place->url() + ".d/not/there.db"); });
  CHECK_MESSAGE((nowhere.fault == Fault::unavailable || nowhere.fault == Fault::misuse), nowhere.text);
  CHECK_MESSAGE(nowhere.names("there.db"), nowhere.text);
  const auto url = place->url() + ".new";
  const auto missing = thrown_by([&] { Engine engine(url); });
  CHECK_MESSAGE((missing.fault == Fault::unavailable || missing.fault == Fault::schema), missing.text);
  CHECK_MESSAGE((missing.names(".new") || missing.names("dlock-migrate up")), missing.text);
  CHECK_FALSE(std::filesystem::exists(url.substr(url.find(':') + 1)));
}

TEST_CASE("a database that is told to forget is said to be, by the setting's name") {
  Database database;
  const auto warnings = [&](const std::string& option) {
    News news;
    { Engine engine(database.url() + option, {.observer = news.observer()}); }
    return news.of(Event::Kind::weak_durability);
  };
  CHECK(warnings("").empty());
  REQUIRE(warnings("?synchronous=off").size() == 1);
  CHECK(warnings("?synchronous=off").front().text.find("synchronous") != std::string::npos);
}

TEST_CASE("a file that is no database is an error") {
  const auto place = opener().place();
  const auto thrown = thrown_by([&] { Engine engine(std::string(opener().name) + ":/etc/passwd"); });
  CHECK(thrown.fault);
}
