// What is done to a connection of SQLite's that belongs to somebody else: nothing but what is promised.
#include "caller_connection.hpp"
#include "commit_refusal.hpp"

#include <doctest/doctest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace dlock;
using dlock::dialects::OtherDatabase;
using dlock::dialects::TextRow;
using dlock::dialects::sqlite::refuse_commit;
using dlock::dialects::sqlite::TransactionConnection;

namespace {

namespace fs = std::filesystem;

// An application with a file, a table, and hooks of its own.
struct Application {
  const fs::path folder = [] {
    std::string name = (fs::temp_directory_path() / "dlock-unit-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    return fs::path(name);
  }();
  const std::string path = folder / "app.db";
  sqlite3* db = nullptr;
  int commits = 0, rollbacks = 0;

  Application() {
    REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
    REQUIRE(run("CREATE TABLE app (n)") == SQLITE_OK);
    watch();
  }
  ~Application() {
    CHECK(sqlite3_close(db) == SQLITE_OK);
    std::error_code none;
    fs::remove_all(folder, none);
  }
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  void watch() {
    sqlite3_commit_hook(
        db, [](void* self) { return ++static_cast<Application*>(self)->commits, 0; }, this);
    sqlite3_rollback_hook(
        db, [](void* self) { ++static_cast<Application*>(self)->rollbacks; }, this);
  }
  int run(const char* sql) { return sqlite3_exec(db, sql, nullptr, nullptr, nullptr); }
  int rows() {
    int count = -1;
    sqlite3_exec(
        db, "SELECT count(*) FROM app",
        [](void* to, int, char** fields, char**) {
          *static_cast<int*>(to) = std::stoi(fields[0]);
          return 0;
        },
        &count, nullptr);
    return count;
  }
  // A transaction that is refused its commit, and the next one.
  void refused(const std::vector<const char*>& before, const std::vector<const char*>& after) {
    for (const auto* sql : before) REQUIRE(run(sql) == SQLITE_OK);
    REQUIRE(refuse_commit(db));
    for (const auto* sql : after) run(sql);
    if (sqlite3_get_autocommit(db) == 0) run("ROLLBACK");
    CHECK(rows() == 0);
    REQUIRE(run("BEGIN") == SQLITE_OK);
    CHECK(run("INSERT INTO app VALUES (1)") == SQLITE_OK);
    CHECK(run("COMMIT") == SQLITE_OK);
    CHECK(rows() == 1);
    CHECK(run("DELETE FROM app") == SQLITE_OK);
  }
};

}  // namespace

TEST_CASE("a commit is refused whatever savepoints the transaction goes back to, and the next one is not") {
  Application app;
  const char* const insert = "INSERT INTO app VALUES (1)";
  app.refused({"BEGIN", insert}, {"COMMIT"});
  app.refused({"BEGIN", insert}, {insert, "END"});
  app.refused({"BEGIN", insert, "SAVEPOINT a", insert}, {"ROLLBACK TO a", insert, "RELEASE a", "COMMIT"});
  app.refused({"SAVEPOINT a", insert}, {"ROLLBACK TO a", insert, "RELEASE a"});
  app.refused({"BEGIN", insert}, {"ROLLBACK"});
  app.refused({"BEGIN"}, {"COMMIT"});
  app.refused({"BEGIN", insert}, {"CREATE TABLE more (n)", "DROP TABLE more", "COMMIT"});
  CHECK(app.run("PRAGMA journal_mode = WAL") == SQLITE_OK);
  app.refused({"BEGIN", insert, "SAVEPOINT a", insert}, {"ROLLBACK TO a", insert, "RELEASE a", "COMMIT"});
}

TEST_CASE("what refuses a commit cannot be dropped") {
  Application app;
  REQUIRE(app.run("BEGIN IMMEDIATE; INSERT INTO app VALUES (1)") == SQLITE_OK);
  REQUIRE(refuse_commit(app.db));
  std::string name;
  sqlite3_exec(
      app.db, "SELECT name FROM temp.sqlite_master",
      [](void* to, int, char** fields, char**) {
        *static_cast<std::string*>(to) = fields[0];
        return 0;
      },
      &name, nullptr);
  REQUIRE(name.starts_with("dlock_unfenced_"));
  app.run(("DROP TABLE temp." + name).c_str());
  app.run("COMMIT");
  if (sqlite3_get_autocommit(app.db) == 0) app.run("ROLLBACK");
  CHECK(app.rows() == 0);
}

TEST_CASE("a transaction is kept from being committed whatever its owner lets be done, and the next one is not") {
  using Authorizer = int (*)(void*, int, const char*, const char*, const char*, const char*);
  constexpr Authorizer no_virtual_tables = [](void*, int action, const char*, const char*, const char*, const char*) {
    return action == SQLITE_CREATE_VTABLE ? SQLITE_DENY : SQLITE_OK;
  };
  constexpr Authorizer nothing = [](void*, int, const char*, const char*, const char*, const char*) {
    return SQLITE_DENY;
  };
  struct Case {
    const char* what;
    std::function<void(sqlite3*)> hinder, let;
  };
  const std::vector<Case> cases{
      {"nothing", [](sqlite3*) {}, [](sqlite3*) {}},
      {"no virtual tables", [&](sqlite3* db) { sqlite3_set_authorizer(db, no_virtual_tables, nullptr); },
       [](sqlite3* db) { sqlite3_set_authorizer(db, nullptr, nullptr); }},
      {"no statement at all", [&](sqlite3* db) { sqlite3_set_authorizer(db, nothing, nullptr); },
       [](sqlite3* db) { sqlite3_set_authorizer(db, nullptr, nullptr); }},
      {"every statement ends",
       [](sqlite3* db) {
         sqlite3_progress_handler(
             db, 1, [](void*) { return 1; }, nullptr);
       },
       [](sqlite3* db) { sqlite3_progress_handler(db, 0, nullptr, nullptr); }},
      {"short statements", [](sqlite3* db) { sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, 4); },
       [](sqlite3* db) { sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, 100'000); }},
      {"queries only", [](sqlite3* db) { sqlite3_exec(db, "PRAGMA query_only = ON", nullptr, nullptr, nullptr); },
       [](sqlite3* db) { sqlite3_exec(db, "PRAGMA query_only = OFF", nullptr, nullptr, nullptr); }},
      {"undone by itself",
       [](sqlite3* db) { sqlite3_exec(db, "INSERT INTO app VALUES (-1)", nullptr, nullptr, nullptr); },
       [](sqlite3*) {}},
      {"undone by itself, and no virtual tables",
       [&](sqlite3* db) {
         sqlite3_exec(db, "INSERT INTO app VALUES (-1)", nullptr, nullptr, nullptr);
         sqlite3_set_authorizer(db, no_virtual_tables, nullptr);
       },
       [](sqlite3* db) { sqlite3_set_authorizer(db, nullptr, nullptr); }},
      {"undone by itself, and no statement at all",
       [&](sqlite3* db) {
         sqlite3_exec(db, "INSERT INTO app VALUES (-1)", nullptr, nullptr, nullptr);
         sqlite3_set_authorizer(db, nothing, nullptr);
       },
       [](sqlite3* db) { sqlite3_set_authorizer(db, nullptr, nullptr); }},
  };
  for (const auto& [what, hinder, let] : cases) {
    INFO(what);
    Application app;
    REQUIRE(app.run("CREATE TRIGGER undo BEFORE INSERT ON app WHEN new.n < 0 BEGIN "
                    "SELECT RAISE(ROLLBACK, 'undone'); END") == SQLITE_OK);
    REQUIRE(app.run("BEGIN IMMEDIATE; INSERT INTO app VALUES (1); SAVEPOINT a") == SQLITE_OK);
    hinder(app.db);
    TransactionConnection(app.db, {"\"main\"", "\"resource_lock\""}).spoil({});
    let(app.db);
    // What was undone is replaced where that is let: its owner has something to roll back.
    if (what == std::string("undone by itself")) CHECK(sqlite3_get_autocommit(app.db) == 0);
    app.run("ROLLBACK TO a");
    app.run("INSERT INTO app VALUES (2)");
    app.run("INSERT INTO app VALUES (2)");
    app.run("COMMIT");
    CHECK(app.rows() == 0);
    if (sqlite3_get_autocommit(app.db) == 0) app.run("ROLLBACK");
    CHECK(app.run("BEGIN; INSERT INTO app VALUES (3); COMMIT") == SQLITE_OK);
    CHECK(app.rows() == 1);
  }
}

// As long as a statement is open, whatever begins is interrupted as well.
TEST_CASE("a transaction is kept from being committed by an interrupt that is under way, and another one is not") {
  Application app;
  REQUIRE(app.run("INSERT INTO app VALUES (1), (2)") == SQLITE_OK);
  for (const bool committed : {true, false}) {
    sqlite3_stmt* open = nullptr;
    REQUIRE(app.run("BEGIN; INSERT INTO app VALUES (3)") == SQLITE_OK);
    REQUIRE(sqlite3_prepare_v2(app.db, "SELECT n FROM app", -1, &open, nullptr) == SQLITE_OK);
    REQUIRE(sqlite3_step(open) == SQLITE_ROW);
    sqlite3_interrupt(app.db);
    TransactionConnection(app.db, {"\"main\"", "\"resource_lock\""}).spoil({});
    sqlite3_finalize(open);
    if (committed) CHECK(app.run("COMMIT") != SQLITE_OK);
    else CHECK(app.run("ROLLBACK") == SQLITE_OK);
    CHECK(sqlite3_get_autocommit(app.db) != 0);
    CHECK(app.rows() == 2);
    CHECK(app.run("BEGIN; INSERT INTO app VALUES (3); COMMIT") == SQLITE_OK);
    CHECK(app.run("DELETE FROM app WHERE n = 3") == SQLITE_OK);
  }
}

TEST_CASE("a transaction that is refused twice is refused once, and one that is not open is not") {
  Application app;
  REQUIRE(app.run("BEGIN") == SQLITE_OK);
  CHECK(refuse_commit(app.db));
  CHECK(refuse_commit(app.db));
  CHECK(app.run("COMMIT") != SQLITE_OK);
  CHECK(std::string(sqlite3_errmsg(app.db)).find("not fenced") != std::string::npos);
  CHECK(sqlite3_get_autocommit(app.db) != 0);
  CHECK(app.run("INSERT INTO app VALUES (1)") == SQLITE_OK);
  CHECK(app.rows() == 1);
}

TEST_CASE("the application's own hooks stay, and hooks that it sets after the refusal do not undo it") {
  Application app;
  REQUIRE(app.run("BEGIN") == SQLITE_OK);
  REQUIRE(app.run("INSERT INTO app VALUES (1)") == SQLITE_OK);
  const auto [commits, rollbacks] = std::pair(app.commits, app.rollbacks);
  REQUIRE(refuse_commit(app.db));
  app.watch();
  CHECK(app.run("COMMIT") != SQLITE_OK);
  CHECK(app.commits == commits);
  CHECK(app.rollbacks == rollbacks + 1);
  CHECK(app.rows() == 0);
  CHECK(app.run("INSERT INTO app VALUES (1)") == SQLITE_OK);
  CHECK(app.commits == commits + 1);
}

TEST_CASE("a file is the same one under every name, and another one under none") {
  Application app, other;
  TransactionConnection connection(app.db, {"\"main\"", "\"resource_lock\""});
  CHECK(connection.is_at(app.path) == true);
  const std::string link = app.folder / "link.db";
  REQUIRE(::symlink(app.path.c_str(), link.c_str()) == 0);
  CHECK(connection.is_at(link) == true);
  CHECK(connection.is_at(other.path) == false);
  CHECK_FALSE(connection.is_at("").has_value());
  CHECK_FALSE(connection.is_at((app.folder / "nothing.db").string()).has_value());
  sqlite3* memory = nullptr;
  REQUIRE(sqlite3_open(":memory:", &memory) == SQLITE_OK);
  CHECK(TransactionConnection(memory, {"\"main\"", "\"resource_lock\""}).is_at(app.path) == false);
  CHECK(sqlite3_close(memory) == SQLITE_OK);
}

TEST_CASE(
    "through a runner a refused transaction is rolled back, and its connection takes no writes until it is told to") {
  std::vector<std::string> sent;
  TransactionConnection connection(
      [&](std::string_view sql) {
        sent.emplace_back(sql);
        return TextRow{"0"};
      },
      {"\"main\"", "\"resource_lock\""});
  connection.doom({});
  CHECK(sent == std::vector<std::string>{"ROLLBACK", "PRAGMA query_only = ON"});
}
