// The promise that who shares a name fences on every server of a cluster, and that a fence on one of them and a grant
// on another are never both committed.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>
#include <soci/soci.h>

#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

Address other_server(ServerDatabase& database) {
  const auto peers = database.server().peers();
  REQUIRE_FALSE(peers.empty());
  return peers.front();
}

LockOptions options_of(Mode mode) {
  LockOptions options;
  options.mode = mode;
  options.limit = mode == Mode::permits ? 1 : 0;
  options.lease = 10min;
  options.renew = false;
  return options;
}

// On all servers.
void expire(ServerDatabase& database) {
  CHECK(eventually([&] {
    try {
      database->admin().run("UPDATE resource_lock_holder SET expires_at = acquired_at");
      database->admin().run("UPDATE resource_lock SET expires_at = acquired_at WHERE owner IS NOT NULL");
      return true;
    } catch (const soci::soci_error&) { return false; }
  }));
  database.server().await_peers();
}

}  // namespace

TEST_CASE("a reader, and who has a permit, fences on another server as soon as it is granted") {
  ServerDatabase database;
  auto engine = database->engine({.timeouts = {.request = 10s}});
  Caller caller(database.server(), other_server(database));
  for (const auto mode : {Mode::shared, Mode::permits}) {
    CAPTURE(to_string(mode));
    int conflicts = 0;
    constexpr int rounds = 40;
    for (int round = 0; round < rounds; ++round) {
      auto lock = engine.try_lock(std::string(to_string(mode)) + std::to_string(round), options_of(mode));
      REQUIRE(lock);
      for (bool fenced = false; !fenced;) {
        caller.begin(database->test_database().beginnings().front());
        const auto thrown = thrown_by([&] {
          lock->fence(caller.native());
          caller.run("COMMIT");
          fenced = true;
        });
        if (fenced) break;
        caller.run("ROLLBACK");
        REQUIRE_MESSAGE(thrown.fault == Fault::conflict, thrown.text);
        ++conflicts;
      }
      CHECK(lock->valid());
    }
    CHECK(conflicts <= rounds / 2);  // the way there is not through failures
  }
}

TEST_CASE("of what was fenced on one server and a grant on another only one is committed, in whatever mode") {
  ServerDatabase database;
  database->admin().run("CREATE TABLE app (n bigint PRIMARY KEY)");
  auto engine = database->engine({.timeouts = {.request = 10s}});
  Engine there(database.server().url_at(other_server(database)), {.timeouts = {.request = 10s}});
  struct Meeting {
    Mode holder, rival;
  };
  long long round = 0, refused = 0;
  for (const auto& meeting : std::vector<Meeting>{{Mode::exclusive, Mode::exclusive},
                                                  {Mode::exclusive, Mode::shared},
                                                  {Mode::shared, Mode::exclusive},
                                                  {Mode::permits, Mode::exclusive},
                                                  {Mode::permits, Mode::permits}}) {
    for (const bool as_text : {false, true}) {
      CAPTURE(to_string(meeting.holder));
      CAPTURE(to_string(meeting.rival));
      CAPTURE(as_text);
      const auto name = "job " + std::to_string(++round);
      auto lock = engine.try_lock(name, options_of(meeting.holder));
      REQUIRE(lock);
      expire(database);
      Caller caller(database.server(), database.server().address());
      caller.begin(database->test_database().beginnings().front());
      if (as_text) caller.run(lock->fence_sql());
      else lock->fence(caller.native());
      caller.run("INSERT INTO app VALUES (" + std::to_string(round) + ")");
      // Nothing of that is known on the other server.
      auto next = there.try_lock(name, options_of(meeting.rival));
      CHECK(next);
      bool stored = false;
      try {
        caller.run("COMMIT");
        stored = true;
      } catch (const std::exception&) { ++refused; }
      database.server().await_peers();
      CHECK_FALSE((stored && next && next->valid()));
      CHECK(database->admin().number("SELECT count(*) FROM app WHERE n = " + std::to_string(round)) ==
            (stored ? 1 : 0));
    }
  }
  CHECK(refused == round);
}
