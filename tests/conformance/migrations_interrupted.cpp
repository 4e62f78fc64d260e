// The promise that a migration which was cut off, at any place, is finished by running it again.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/exit_status.hpp"
#include "support/later_versions.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

#include <unistd.h>
#include <csignal>
#include <functional>
#include <string>

using namespace dlock;
using namespace dlock::test;
using schema::SchemaState;

namespace {

// Runs `work` in a process of its own that is killed when its observer has been told `count` things. True: it was.
bool killed_after(int count, const std::function<void(const schema::Options&)>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      int told = 0;
      schema::Options options;
      options.observer = [&](std::string_view) {
        if (++told == count) ::kill(::getpid(), SIGKILL);
      };
      work(options);
    } catch (...) { ::_exit(1); }
    ::_exit(0);
  }
  const auto end = await_end(child);
  const bool killed = end == killed_by(SIGKILL);
  if (!killed) CHECK(end == exited(0));  // all of it was done
  return killed;
}

// As if the time that a killed migrator's row is respected had passed.
void end_leases(const TestDatabase& test_database) {
  if (schema::status(test_database.url()).history_exists)
    Admin(test_database).run("UPDATE resource_lock_schema_history SET lease_until = 0");
}

}  // namespace

TEST_CASE("killed after any step of up, the next up finishes it") {
  const LaterVersions versions;
  bool killed = true;
  for (int step = 1; killed; ++step) {
    CAPTURE(step);
    REQUIRE(step < 50);
    const auto test_database = opener().test_database();
    killed = killed_after(
        step, [&](const schema::Options& options) { static_cast<void>(schema::up(test_database->url(), options)); });
    end_leases(*test_database);
    const auto state = schema::check(test_database->url()).state;
    if (killed)
      CHECK_MESSAGE((state == SchemaState::pending || state == SchemaState::interrupted), schema::to_string(state));
    CHECK_MESSAGE(schema::up(test_database->url()).state == SchemaState::good, step);
    CHECK(schema::check(test_database->url()).state == SchemaState::good);
    Admin admin(*test_database);
    CHECK(admin.number("SELECT count(*) FROM resource_lock_schema_history WHERE state = 'applied'") ==
          schema::status(test_database->url()).latest);
    CHECK(admin.number("SELECT count(*) FROM resource_lock") == 1);
    Engine engine(test_database->url(), {.timeouts = {.release = far_longer()}});
    CHECK(engine.try_lock("job")->release() == Released::freed);
  }
}

TEST_CASE("killed after any step of down, the next down finishes it, and so does the next up") {
  const LaterVersions versions;
  for (const bool forward : {false, true}) {
    bool killed = true;
    for (int step = 1; killed; ++step) {
      CAPTURE(step);
      CAPTURE(forward);
      REQUIRE(step < 50);
      const auto test_database = opener().test_database();
      REQUIRE(schema::up(test_database->url()).state == SchemaState::good);
      killed = killed_after(step, [&](const schema::Options& options) {
        static_cast<void>(schema::down(test_database->url(), 0, options));
      });
      end_leases(*test_database);
      if (forward) {
        CHECK(schema::up(test_database->url()).state == SchemaState::good);
        CHECK(schema::check(test_database->url()).state == SchemaState::good);
      } else {
        CHECK(schema::down(test_database->url(), 0).state == SchemaState::good);
        CHECK_FALSE(schema::status(test_database->url()).table_exists);
        CHECK_FALSE(schema::status(test_database->url()).history_exists);
      }
    }
  }
}

TEST_CASE(
    "an upgrade of a table with rows, killed after any step, is finished by repair or by up, and keeps the rows") {
  const LaterVersions versions;
  for (const bool repaired : {true, false}) {
    bool killed = true;
    for (int step = 1; killed; ++step) {
      CAPTURE(step);
      CAPTURE(repaired);
      REQUIRE(step < 50);
      const auto test_database = opener().test_database();
      REQUIRE(schema::up(test_database->url(), {}, 1).state == SchemaState::good);
      Admin(*test_database).run("INSERT INTO resource_lock (name, token, meta) VALUES ('free', 17, 'kept')");
      killed = killed_after(
          step, [&](const schema::Options& options) { static_cast<void>(schema::up(test_database->url(), options)); });
      end_leases(*test_database);
      if (repaired) CHECK(schema::repair(test_database->url()).state == SchemaState::good);
      CHECK(schema::up(test_database->url()).state == SchemaState::good);
      CHECK(schema::check(test_database->url()).state == SchemaState::good);
      Engine engine(test_database->url(), {.timeouts = {.release = far_longer()}});
      auto lock = engine.try_lock("free");
      REQUIRE(lock);
      CHECK(lock->token() == Token{18});
      CHECK(lock->release() == Released::freed);
    }
  }
}

TEST_CASE("stopped after any step of up, nothing is half done without being said, and the next up finishes it") {
  const LaterVersions versions;
  for (int step = 1; step <= 3; ++step) {
    CAPTURE(step);
    const auto test_database = opener().test_database();
    std::stop_source stop;
    int told = 0;
    schema::Options options;
    options.stop = stop.get_token();
    options.observer = [&](std::string_view) {
      if (++told == step) stop.request_stop();
    };
    const auto report = schema::up(test_database->url(), options);
    const auto check = schema::check(test_database->url()).state;
    if (report.state == SchemaState::good) CHECK(check == SchemaState::good);
    else CHECK((check == SchemaState::pending || check == SchemaState::interrupted));
    CHECK(schema::up(test_database->url()).state == SchemaState::good);
    CHECK(schema::check(test_database->url()).state == SchemaState::good);
  }
}
