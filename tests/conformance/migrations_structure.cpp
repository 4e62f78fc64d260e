// The promise that the migrations lead exactly to the table that schema/ shows.
#include "migrate/history.hpp"
#include "support/database.hpp"
#include "support/later_versions.hpp"
#include "support/paths.hpp"
#include "types/clock.hpp"

#include "api/open.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

#include <fstream>
#include <map>

using namespace dlock;
using namespace dlock::test;

namespace {

Deadline soon() { return later(BootClock::now(), std::chrono::seconds{30}); }

// What a connection of the library sees.
struct View {
  explicit View(const TestDatabase& test_database, bool create = false)
      : resolved(api::resolve(test_database.url(), options(create))) {
    connection = resolved.connector->connect(soon());
    names.schema = connection->default_schema(soon());
  }
  static dialects::ConnectOptions options(bool create) {
    dialects::ConnectOptions result;
    result.create = create;
    return result;
  }
  migrate::History history() {
    return migrate::History(*connection, resolved.dialect, migrate::migrations_of(resolved.dialect), names);
  }

  api::ResolvedUrl resolved;
  std::unique_ptr<dialects::Connection> connection;
  dialects::TableNames names;
};

}  // namespace

TEST_CASE("the migrations lead exactly to the table that schema/ shows") {
  Database migrated;
  View one(migrated.test_database());
  const auto test_database = opener().test_database();
  View other(*test_database, true);
  other.connection->script(other.resolved.dialect.texts().schema_sql, soon());
  const auto migrations = one.history().structure();
  CHECK(migrations.size() > 12);
  CHECK(migrations == other.history().structure());
  CHECK(one.history().details() == other.history().details());
  CHECK(other.history().has_floor());
}

TEST_CASE("each version makes what is written beside it, on the way up and on the way back") {
  const LaterVersions versions;
  const auto test_database = opener().test_database();
  REQUIRE(schema::up(test_database->url(), {}, 1).state == schema::SchemaState::good);
  const auto migrations = migrate::migrations_of(View(*test_database).resolved.dialect);
  const int latest = static_cast<int>(migrations.size());
  for (int version = 1; version < 2 * latest; ++version) {
    const int at = version <= latest ? version : 2 * latest - version;
    CAPTURE(at);
    const auto report =
        version <= latest ? schema::up(test_database->url(), {}, at) : schema::down(test_database->url(), at);
    REQUIRE_MESSAGE(report.state == schema::SchemaState::good, report.message);
    CHECK(View(*test_database).history().structure() == migrations.at(static_cast<std::size_t>(at - 1)).structure);
    CHECK(schema::dump(test_database->url()).version == at);
  }
}

TEST_CASE("the same tables have the same structure under other names, and after a way down and up again") {
  const LaterVersions versions;
  Database database;
  const auto before = schema::dump(database.url());
  CHECK(before.table == "resource_lock");
  CHECK_FALSE(before.details.empty());
  schema::Options other;
  other.table = "another_lock";
  REQUIRE(schema::up(database.url(), other).state == schema::SchemaState::good);
  CHECK(schema::dump(database.url(), other).lines == before.lines);
  REQUIRE(schema::down(database.url(), 1).state == schema::SchemaState::good);
  CHECK(schema::dump(database.url()).lines != before.lines);
  REQUIRE(schema::up(database.url()).state == schema::SchemaState::good);
  CHECK(schema::dump(database.url()).lines == before.lines);
  CHECK(schema::check(database.url()).state == schema::SchemaState::good);
  REQUIRE(schema::down(database.url(), 0, other).state == schema::SchemaState::good);
}

TEST_CASE("an upgrade keeps every row with its token, and so does the way back") {
  const LaterVersions versions;
  const auto test_database = opener().test_database(), fresh = opener().test_database();
  for (const auto* which : {test_database.get(), fresh.get()})
    REQUIRE(schema::up(which->url(), {}, 1).state == schema::SchemaState::good);
  const int latest = schema::latest(View(*test_database).resolved.dialect.name());
  {
    Admin admin(*test_database);
    admin.run(
        "INSERT INTO resource_lock (name, owner, token, expires_at, meta) VALUES "
        "('held', '00000000000000000000000000000001', 41, 9000000000000000, 'kept')");
    admin.run("INSERT INTO resource_lock (name, token) VALUES ('free', 17)");
  }
  for (const bool up : {true, false}) {
    const auto report = up ? schema::up(test_database->url()) : schema::down(test_database->url(), 1, {}, true);
    CHECK_MESSAGE(report.state == schema::SchemaState::good, report.message);
    CHECK(report.to == (up ? latest : 1));
    Admin admin(*test_database);
    CHECK(admin.number("SELECT token FROM resource_lock WHERE name = 'held'") == 41);
    CHECK(admin.text("SELECT meta FROM resource_lock WHERE name = 'held'") == "kept");
    CHECK(admin.number("SELECT token FROM resource_lock WHERE name = 'free'") == (up ? 17 : 18));
    CHECK(admin.text("SELECT state FROM resource_lock_status WHERE name = 'held'") == "held");
    if (up) {
      CHECK(schema::check(test_database->url()).state == schema::SchemaState::good);
      CHECK(admin.number("SELECT added + more + third FROM resource_lock WHERE name = 'held'") == 0);
      CHECK(admin.number("SELECT added FROM resource_lock_status WHERE name = 'held'") == 0);
      Engine engine(test_database->url(), {.timeouts = {.release = far_longer()}});
      CHECK_FALSE(engine.try_lock("held"));
      auto lock = engine.try_lock("free");
      REQUIRE(lock);
      CHECK(lock->token() == Token{18});
      CHECK(lock->release() == Released::freed);
    }
  }
  CHECK(View(*test_database).history().structure() == View(*fresh).history().structure());
}

TEST_CASE("each installation has an identity of its own, and what is run again does not change it") {
  Database database, another;
  const auto identity = [](Admin& admin, const std::string& table) {
    return admin.text("SELECT meta FROM " + table + " WHERE name = ''");
  };
  const auto first = identity(database.admin(), "resource_lock");
  CHECK(first.size() == 32);
  CHECK(first.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(identity(another.admin(), "resource_lock") != first);
  schema::Options other;
  other.table = "other_lock";
  REQUIRE(schema::up(database.url(), other).state == schema::SchemaState::good);
  CHECK(identity(database.admin(), "other_lock").size() == 32);
  CHECK(identity(database.admin(), "other_lock") != first);
  CHECK(schema::up(database.url()).versions.empty());
  CHECK(identity(database.admin(), "resource_lock") == first);
  // A version that was done and not written down, and a history that was lost.
  database.admin().run("UPDATE resource_lock_schema_history SET state = 'failed', steps_done = 0");
  REQUIRE(schema::mark_applied(database.url(), 1).versions.size() == 1);
  CHECK(identity(database.admin(), "resource_lock") == first);
  database.admin().run("DROP TABLE resource_lock_schema_history");
  REQUIRE(schema::baseline(database.url(), 1).versions.size() == 1);
  CHECK(schema::repair(database.url()).restored.empty());
  CHECK(identity(database.admin(), "resource_lock") == first);
  REQUIRE(schema::down(database.url(), 0, other).state == schema::SchemaState::good);
}

TEST_CASE("a table made by hand from schema/ can be used") {
  const auto test_database = opener().test_database();
  View view(*test_database, true);
  view.connection->script(view.resolved.dialect.texts().schema_sql, soon());
  Engine engine(test_database->url(), {.timeouts = {.release = far_longer()}});
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  CHECK(lock->release() == Released::freed);
}

TEST_CASE("the checksum of every released version is frozen") {
  const auto test_database = opener().test_database();
  View view(*test_database, true);
  const std::string path = path::source() + "/migrations/" + std::string(view.resolved.dialect.name()) + "/released";
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.is_open(), path);
  std::map<int, std::string> frozen;
  for (int version = 0; file >> version;) file >> frozen[version];
  const auto migrations = migrate::migrations_of(view.resolved.dialect);
  CHECK(frozen.size() == migrations.size());
  for (const auto& migration : migrations)
    CHECK_MESSAGE(frozen[migration.version] == migration.checksum, "version " << migration.version);
}

TEST_CASE("the view shows people the state of a lock in words, names as text, and no floor row") {
  Database database;
  auto engine = database.engine();
  auto& admin = database.admin();
  const auto state = [&](const std::string& name) {
    return admin.text("SELECT state FROM resource_lock_status WHERE name = '" + name + "'");
  };
  auto held = engine.try_lock("held");
  CHECK(engine.try_lock("free")->release() == Released::freed);
  CHECK(engine.try_lock("closed", {.at_least = std::chrono::hours{1}})->release() == Released::freed);
  auto expired = engine.try_lock("expired", {.lease = std::chrono::hours{1}, .renew = false});
  admin.expire("expired");
  CHECK(state("held") == "held");
  CHECK(state("free") == "free");
  CHECK(state("closed") == "closed");
  CHECK(state("expired") == "expired");
  CHECK(admin.number("SELECT count(*) FROM resource_lock_status") == 4);
  held->release();
  free_by_force(engine, "expired");
}

TEST_CASE("the view says how a lock is held, and by how many") {
  Database database;
  auto engine = database.engine();
  auto& admin = database.admin();
  const auto held = [&](const std::string& name) {
    const auto where = " FROM resource_lock_status WHERE name = '" + name + "'";
    return admin.text("SELECT mode" + where) + " " + std::to_string(admin.number("SELECT holders" + where));
  };
  const LockOptions by_node{.reentrance = Reentrance::node};
  auto alone = engine.try_lock("alone");
  auto first = engine.try_lock("node", by_node), second = engine.try_lock("node", by_node);
  REQUIRE(second);
  auto expired = engine.try_lock("expired", {.lease = std::chrono::hours{1}, .renew = false});
  admin.expire("expired");
  CHECK(engine.try_lock("free")->release() == Released::freed);
  CHECK(held("alone") == "exclusive 1");
  CHECK(held("node") == "node 2");
  CHECK(held("expired") == " 0");
  CHECK(held("free") == " 0");

  const std::string gate(32, 'a'), other(32, 'b'), far = "9000000000000000";
  for (const std::string mode : {"shared", "permits"}) {
    admin.run("INSERT INTO resource_lock (name, owner, token, expires_at, mode) VALUES ('" + mode + "', '" + gate +
              "', 1, " + far + ", '" + mode + "')");
    int count = 0;
    const auto hold = [&](const std::string& under, const std::string& until) {
      admin.run("INSERT INTO resource_lock_holder (name, owner, gate, token, expires_at) VALUES ('" + mode + "', '" +
                std::to_string(++count) + "', '" + under + "', 1, " + until + ")");
    };
    CHECK(held(mode) == mode + " 0");
    hold(gate, far);
    hold(gate, far);
    hold(gate, "1");  // its lease is over
    hold("", far);    // given back
    hold(other, far);
    CHECK(held(mode) == mode + " 2");
    admin.run("UPDATE resource_lock SET expires_at = 1 WHERE name = '" + mode + "'");
    CHECK(held(mode) == " 0");
    admin.run("DELETE FROM resource_lock WHERE name = '" + mode + "'");
  }
  second->release();
  first->release();
  alone->release();
  free_by_force(engine, "expired");
}

TEST_CASE("the statements that are printed make the same table as the ones that are run, and the same history") {
  const LaterVersions versions;
  Database run;
  const auto test_database = opener().test_database();
  View view(*test_database, true);
  const auto name = view.resolved.dialect.name();
  // As patient as a client's session: a connection that has just been closed may keep the table locked for a moment.
  if (name == "mysql")
    view.connection->script("SET SESSION lock_wait_timeout = 60, innodb_lock_wait_timeout = 60", soon());
  view.connection->script(schema::sql(name, 0, schema::latest(name)), soon());
  CHECK(schema::check(test_database->url()).state == schema::SchemaState::good);
  View other(run.test_database());
  CHECK(view.history().structure() == other.history().structure());
  const auto printed = view.history().find().rows, applied = other.history().find().rows;
  REQUIRE(printed.size() == applied.size());
  for (std::size_t i = 0; i < printed.size(); ++i) {
    CHECK(printed[i].number == applied[i].number);
    CHECK(printed[i].state == applied[i].state);
    CHECK(printed[i].checksum == applied[i].checksum);
    CHECK(printed[i].min_client == applied[i].min_client);
    CHECK(printed[i].steps_done == applied[i].steps_done);
    CHECK(printed[i].steps_total == applied[i].steps_total);
  }
  view.connection->script(schema::sql(name, schema::latest(name), 0), soon());
  CHECK_FALSE(schema::status(test_database->url()).table_exists);
  CHECK_FALSE(schema::status(test_database->url()).history_exists);
}
