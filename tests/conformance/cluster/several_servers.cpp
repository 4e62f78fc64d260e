// Promises with clients on several servers of a cluster, all of which take writes: what one has acknowledged counts on
// the others from then on, and a server that is a little behind calls nothing lost.
#include "engine/faults.hpp"
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"

#include <doctest/doctest.h>
#include <soci/soci.h>

#include <future>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// A server that is behind is met in a part of the rounds only: about one in eight.
constexpr int rounds = 120;

Address other_server(ServerDatabase& database) {
  const auto peers = database.server().peers();
  REQUIRE_FALSE(peers.empty());
  return peers.front();
}

std::string name_of(int round) { return "job " + std::to_string(round); }

// In a cluster anything may meet a conflict, which says nothing of who holds what.
template <class Call>
auto asked(Call ask) {
  for (;;) try {
      return ask();
    } catch (const Failure& failure) {
      if (!is_transient(failure.cause())) throw;
    }
}

// What the tests leave held; a server that is still taking in what another one wrote may refuse it at first.
void free_all(Database& database) {
  CHECK(eventually([&] {
    try {
      database.admin().run("UPDATE resource_lock SET owner = NULL");
      return true;
    } catch (const soci::soci_error&) { return false; }
  }));
}

// A server of the cluster takes nothing from the others while this lives.
class Behind {
 public:
  Behind(ServerTestDatabase& test_database, const Address& server) : session_(test_database.connect_at(server)) {
    *session_ << "FLUSH TABLES WITH READ LOCK";
  }
  ~Behind() { catches_up(); }
  Behind(const Behind&) = delete;
  Behind& operator=(const Behind&) = delete;

  void catches_up() { *session_ << "UNLOCK TABLES"; }

 private:
  const std::unique_ptr<soci::session> session_;
};

// Keeps the other servers busy for a moment with a large transaction, each time: what is committed here after it comes
// to them later.
class Lag {
 public:
  explicit Lag(ServerDatabase& database)
      : admin_(database->admin()), there_(database.server().connect_at(other_server(database))) {
    admin_.run("CREATE TABLE ten (id INT PRIMARY KEY)");
    admin_.run("INSERT INTO ten VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)");
    admin_.run("CREATE TABLE large (id INT AUTO_INCREMENT PRIMARY KEY, n INT)");
  }

  void begin() { admin_.run("INSERT INTO large (n) SELECT a.id FROM ten a, ten b, ten c, ten d, ten e"); }

  // Whether the other server knows nothing of this name yet.
  bool lasts(const std::string& name) {
    int known = 0;
    *there_ << "SELECT COUNT(*) FROM resource_lock WHERE name = :name", soci::use(name), soci::into(known);
    return known == 0;
  }

 private:
  Admin& admin_;
  const std::unique_ptr<soci::session> there_;
};

}  // namespace

TEST_CASE("a lease is fenced on another server as soon as it is granted, whoever is a little behind") {
  ServerDatabase database;
  auto engine = database->engine({.timeouts = {.request = 10s}});
  Caller caller(database.server(), other_server(database));
  int refused = 0, conflicts = 0;
  for (int round = 0; round < rounds; ++round) {
    auto lock = engine.try_lock(name_of(round), {.lease = 10min});
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
      REQUIRE_MESSAGE((thrown.fault == Fault::conflict || thrown.fault == Fault::lost), thrown.text);
      if (thrown.fault == Fault::lost) {
        ++refused;
        break;
      }
      ++conflicts;
    }
    CHECK(lock->valid());
  }
  CHECK(refused == 0);
  CHECK(conflicts <= rounds / 2);  // the way there is not through failures
}

TEST_CASE("what is renewed, extended and released through another server just after it was granted is no loss there") {
  ServerDatabase database;
  const auto here = open_table(database->url()), there = open_table(database.server().url_at(other_server(database)));
  const auto soon = [] { return later(BootClock::now(), 1min); };
  int renewed = 0, extended = 0, released = 0;
  const std::string owner(32, 'a'), actor(32, 'b');
  for (int round = 0; round < rounds; ++round) {
    const auto name = name_of(round);
    std::vector<store::LeaseKey> claims;
    for (const std::string kind : {" renewed", " extended", " released"}) {
      const auto whole = name + kind;
      const Name lock_name(whole);
      const auto granted = asked([&] {
        const store::AcquireRequest ask{lock_name, owner, "node", "label", actor, 10min, {}, {}};
        return here->acquire(ask, soon());
      });
      REQUIRE(granted.token);
      const store::LeaseKey claim{whole, owner, *granted.token, 10min};
      if (kind == " renewed")
        renewed += asked([&] { return there->renew({&claim, 1}, soon()).front(); }) != store::Renewed::lost ? 1 : 0;
      else if (kind == " extended")
        extended += asked([&] { return there->extend(claim, 20min, {}, soon()); }) != store::Renewed::lost ? 1 : 0;
      else released += asked([&] { return there->release(claim, soon()); }) ? 1 : 0;
    }
  }
  CHECK(renewed == rounds);
  CHECK(extended == rounds);
  CHECK(released == rounds);
  free_all(*database);
}

TEST_CASE(
    "who holds a name beside others renews, extends, releases and adopts on a server that does not know of it yet") {
  ServerDatabase database;
  Lag lag(database);
  const auto here = open_table(database->url()), there = open_table(database.server().url_at(other_server(database)));
  const auto soon = [] { return later(BootClock::now(), 1min); };
  const std::string owner(32, 'a'), actor(32, 'b'), heir(32, 'c');
  for (const auto mode : {Mode::shared, Mode::permits, Mode::node})
    for (const std::string kind : {"renewed", "extended", "released", "adopted"}) {
      if (kind == "adopted" && mode == Mode::node) continue;  // an entry of a node is adopted by nobody
      CAPTURE(static_cast<int>(mode));
      CAPTURE(kind);
      bool behind = false;
      for (int round = 0; round < rounds && !behind; ++round) {
        const auto whole = name_of(round) + kind + std::to_string(static_cast<int>(mode));
        const Name lock_name(whole);
        store::AcquireRequest ask{lock_name, owner, "node", "label", actor, 10min, {}, {}};
        ask.mode = mode;
        ask.limit = mode == Mode::permits ? 5 : 0;
        lag.begin();
        const auto granted = asked([&] { return here->acquire(ask, soon()); });
        REQUIRE(granted.token);
        const store::LeaseKey claim{whole, owner, *granted.token, 10min, mode};
        behind = lag.lasts(whole);
        if (kind == "renewed") {
          CHECK(asked([&] { return there->renew({&claim, 1}, soon()).front(); }) != store::Renewed::lost);
        } else if (kind == "extended") {
          CHECK(asked([&] { return there->extend(claim, 20min, {}, soon()); }) != store::Renewed::lost);
        } else if (kind == "released") {
          CHECK(asked([&] { return there->release(claim, soon()); }));
        } else {
          auto to = ask;
          to.owner = heir;
          CHECK(asked([&] { return there->adopt(claim, to, soon()); }) == mode);
        }
      }
      CHECK(behind);
    }
  free_all(*database);
}

TEST_CASE(
    "a lease becomes a shared one on a server that does not know of it yet, and on the first one exclusive again") {
  ServerDatabase database;
  Lag lag(database);
  const auto here = open_table(database->url()), there = open_table(database.server().url_at(other_server(database)));
  const auto soon = [] { return later(BootClock::now(), 1min); };
  const std::string owner(32, 'a'), actor(32, 'b'), reader(32, 'c'), writer(32, 'd');
  bool behind = false;
  for (int round = 0; round < rounds && !behind; ++round) {
    const auto whole = name_of(round);
    const Name lock_name(whole);
    const store::AcquireRequest ask{lock_name, owner, "node", "label", actor, 10min, {}, {}};
    lag.begin();
    const auto granted = asked([&] { return here->acquire(ask, soon()); });
    REQUIRE(granted.token);
    const store::LeaseKey exclusive{whole, owner, *granted.token, 10min};
    behind = lag.lasts(whole);
    const auto shared = asked([&] { return there->downgrade(exclusive, reader, soon()); });
    REQUIRE(shared);
    const store::LeaseKey one_of_several{whole, reader, *shared, 10min, Mode::shared};
    CHECK(asked([&] { return here->upgrade(one_of_several, writer, soon()); }));
  }
  CHECK(behind);
  free_all(*database);
}

TEST_CASE("a grant that was handed to a client of another server is adopted there at once") {
  ServerDatabase database;
  auto here = database->engine({.timeouts = {.request = 10s}});
  Engine there(database.server().url_at(other_server(database)), {.timeouts = {.request = 10s}});
  int adopted = 0;
  for (int round = 0; round < rounds; ++round) {
    auto lock = here.try_lock(name_of(round), {.lease = 10min});
    REQUIRE(lock);
    auto heir = there.adopt(name_of(round), lock->detach(), {.lease = 10min});
    if (!heir) continue;
    ++adopted;
    CHECK(heir->release() != Released::was_lost);
  }
  CHECK(adopted == rounds);
  free_all(*database);
}

TEST_CASE("who looks through a server that is behind waits until it has caught up, and sees what was acknowledged") {
  for (const bool prepared : {true, false}) {
    CAPTURE(prepared);
    ServerDatabase database;
    auto here = database->engine();
    Engine there(database.server().url_at(other_server(database)),
                 {.timeouts = {.request = 1min}, .prepared_statements = prepared});
    Behind behind(database.server(), other_server(database));
    const auto lock = here.try_lock("job", {.lease = 10min});
    REQUIRE(lock);
    auto looks = std::async(std::launch::async, [&] { return there.inspect("job"); });
    CHECK(looks.wait_for(300ms) == std::future_status::timeout);
    behind.catches_up();
    const auto seen = looks.get();
    REQUIRE(seen);
    CHECK(seen->token == lock->token());
  }
}

TEST_CASE("how far the cluster has come is told by a server that is behind only when it has caught up") {
  for (const bool prepared : {true, false}) {
    CAPTURE(prepared);
    ServerDatabase database;
    auto here = database->engine();
    const auto there = open_table(database.server().url_at(other_server(database)), 2, {}, prepared);
    Behind behind(database.server(), other_server(database));
    const auto lock = here.try_lock("job", {.lease = 10min});
    REQUIRE(lock);
    auto position = std::async(std::launch::async, [&] { return there->position(later(BootClock::now(), 1min)); });
    CHECK(position.wait_for(300ms) == std::future_status::timeout);
    behind.catches_up();
    CHECK_FALSE(position.get().empty());
  }
}

TEST_CASE(
    "without prepared statements the wait for the others and what waits are one text, so that both are one session's") {
  ServerDatabase database;
  Proxy proxy(database.server());
  Engine engine(database.server().url_at(proxy.address()), {.connections = 1, .prepared_statements = false});
  const auto lock = engine.try_lock("job", {.lease = 10min});
  REQUIRE(lock);
  const auto before = proxy.requests();
  CHECK(engine.inspect("job").has_value());
  CHECK(engine.list("*").size() == 1);
  CHECK(proxy.requests() - before == 2);
}

TEST_CASE("a transaction on a server that has not heard of a release yet is not told that the lock is busy") {
  ServerDatabase database;
  auto engine = database->engine({.timeouts = {.request = 1s}});
  Engine there(database.server().url_at(other_server(database)));
  auto lock = engine.try_lock("job", {.lease = 10min});
  REQUIRE(lock);
  REQUIRE(there.inspect("job")->owner == lock->owner());
  Caller caller(database.server(), other_server(database));
  if (const auto setting = database.server().wait_briefly(); !setting.empty()) caller.run(setting);
  Behind behind(database.server(), other_server(database));
  REQUIRE(lock->release() == Released::freed);
  caller.begin(database->test_database().beginnings().front());
  bool granted = false;
  const auto thrown = thrown_by([&] { granted = engine.try_lock_in(caller.native(), "job").has_value(); });
  CHECK_FALSE(granted);
  CHECK_MESSAGE(thrown.fault == Fault::conflict, thrown.text);
  caller.run("ROLLBACK");
  behind.catches_up();
  for (; !granted; caller.run("ROLLBACK")) {
    caller.begin(database->test_database().beginnings().front());
    const auto again = thrown_by([&] {
      granted = engine.try_lock_in(caller.native(), "job").has_value();
      REQUIRE(granted);
    });
    if (!granted) REQUIRE_MESSAGE(again.fault == Fault::conflict, again.text);
  }
}

TEST_CASE("a fence on a server that does not catch up is a conflict, and the lease is kept") {
  ServerDatabase database;
  auto engine = database->engine({.timeouts = {.request = 1s}});
  Caller caller(database.server(), other_server(database));
  if (const auto setting = database.server().wait_briefly(); !setting.empty()) caller.run(setting);
  Behind behind(database.server(), other_server(database));
  auto lock = engine.try_lock("job", {.lease = 10min});
  REQUIRE(lock);
  caller.begin(database->test_database().beginnings().front());
  const auto thrown = thrown_by([&] { lock->fence(caller.native()); });
  CHECK_MESSAGE(thrown.fault == Fault::conflict, thrown.text);
  CHECK(lock->valid());
  caller.run("ROLLBACK");
  behind.catches_up();
  for (bool fenced = false; !fenced;) {
    caller.begin(database->test_database().beginnings().front());
    const auto again = thrown_by([&] {
      lock->fence(caller.native());
      caller.run("COMMIT");
      fenced = true;
    });
    if (fenced) break;
    REQUIRE_MESSAGE(again.fault == Fault::conflict, again.text);
    caller.run("ROLLBACK");
  }
  CHECK(lock->valid());
}
