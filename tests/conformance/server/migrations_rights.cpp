// The promise that the printed grants are enough: for a migrator, for an engine, and for who only looks.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/later_versions.hpp"
#include "support/read_only_calls.hpp"
#include "types/url.hpp"

#include "api/open.hpp"

#include <doctest/doctest.h>
#include <dlock/guard.hpp>
#include <dlock/schema.hpp>

#include <future>
#include <sstream>
#include <utility>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;
using schema::SchemaState;

namespace {

// The URL of a new role that has exactly what is printed for it.
std::string url_of(ServerTestDatabase& test_database, schema::Role role) {
  const auto url = test_database.url_of_role({});
  std::istringstream grants(schema::grants(test_database.url(), role, Url::parse(url).user.value()));
  Admin admin(test_database);
  for (std::string statement; std::getline(grants, statement);) admin.run(statement.substr(0, statement.find(';')));
  return url;
}

// An application's own connection.
struct Application {
  explicit Application(const std::string& url)
      : resolved(api::resolve(url, {})), connection(resolved.connector->connect(soon())) {
    runner.dialect = std::string(resolved.dialect.name());
    runner.run = [this](std::string_view sql) {
      dialects::Statement statement;
      statement.sql = sql;
      statement.marker = resolved.dialect.traits().marker;
      const auto& answer = connection->run(statement, {}, soon());
      std::vector<std::optional<std::string>> row;
      if (answer.columns() == 0) row.emplace_back(std::to_string(answer.affected));
      for (std::size_t i = 0; answer.rows() > 0 && i < answer.columns(); ++i) {
        if (answer.is_null(0, i)) row.emplace_back();
        else {
          try {
            row.emplace_back(std::to_string(answer.integer(0, i)));
          } catch (const std::bad_variant_access&) { row.emplace_back(answer.text(0, i)); }
        }
      }
      return row;
    };
  }
  static Deadline soon() { return later(BootClock::now(), 30s); }
  void run(std::string_view sql) { connection->script(sql, soon()); }

  api::ResolvedUrl resolved;
  std::unique_ptr<dialects::Connection> connection;
  SqlRunner runner;
};

// Everything a migration could have changed.
std::string everything(const TestDatabase& test_database) {
  std::string text;
  const auto dump = schema::dump(test_database.url());
  for (const auto& lines : {dump.lines, dump.details})
    for (const auto& line : lines) text += line + "\n";
  const auto status = schema::status(test_database.url());
  text += std::to_string(status.history_exists);
  for (const auto& version : status.versions)
    text += "\n" + version.name + version.state + version.checksum + version.applied_by + version.error +
            std::to_string(version.steps_done) +
            (version.started ? std::to_string(version.started->time_since_epoch().count()) : "");
  if (status.table_exists)
    text += std::to_string(Admin(test_database).number("SELECT sum(token) + count(*) FROM resource_lock"));
  return text;
}

}  // namespace

TEST_CASE("the migrator's grants are enough for everything that migrates") {
  const LaterVersions versions;
  const auto test_database = opener().server_database();
  const auto url = url_of(*test_database, schema::Role::migrator);
  const auto good = [](const schema::Report& report) {
    CHECK_MESSAGE(report.state == SchemaState::good, report.message);
    return !report.versions.empty();
  };
  CHECK(good(schema::up(url, {}, 1)));
  CHECK(good(schema::up(url)));
  CHECK(schema::check(url).state == SchemaState::good);
  CHECK(good(schema::down(url, 1)));
  CHECK(good(schema::up(url)));
  Admin(*test_database).run("DROP TABLE resource_lock_schema_history");
  CHECK(good(schema::baseline(url, schema::status(url).latest)));
  Admin(*test_database).run("UPDATE resource_lock_schema_history SET state = 'failed' WHERE version = 2");
  CHECK(good(schema::mark_applied(url, 2)));
  CHECK(good(schema::down(url, 0)));
  CHECK(good(schema::up(url)));
}

TEST_CASE("an engine runs whole with the runtime's grants, and with no others") {
  ServerDatabase database;
  const auto url = url_of(database.server(), schema::Role::runtime);
  {
    Engine engine(
        url, {.timeouts = {.release = 10s * slowness()}, .reaper = {.retention = Duration{1}, .grace = Duration{1}}});
    auto lock = engine.try_lock("job", {.at_least = 1ms});
    REQUIRE(lock);
    lock->extend(10s);
    CHECK_FALSE(engine.try_lock("job", {.reentrance = Reentrance::none}));
    CHECK_FALSE(answered([&] { return engine.try_lock_for("job", 50ms, {.reentrance = Reentrance::none}); }));
    CHECK(engine.inspect("job"));
    CHECK(engine.list().size() == 1);

    Application application(url);
    const auto beginnings = database->test_database().beginnings();
    for (const auto& sql : beginnings.front().statements) application.run(sql);
    lock->fence(application.runner);
    CHECK(engine.try_lock_in(application.runner, "another"));
    application.run("COMMIT");
    CHECK(lock->release() == Released::freed);

    const auto shared = engine.try_lock("shared", {.reentrance = Reentrance::node});
    CHECK(shared);
    CHECK(engine.force_release("shared", shared->token()));
    database->admin().make_idle_for_days("job");
    engine.reap_all();
    CHECK_FALSE(database->admin().exists("job"));
  }
  schema::Options options;
  options.timeouts.lock = Duration{};
  CHECK(thrown_by([&] { static_cast<void>(schema::down(url, 0, options, true)); }).fault == Fault::permission);
  CHECK(schema::check(database->url()).state != SchemaState::failed);
}

TEST_CASE("the runtime's grants are enough to wait, in turn and not, and to be told of a release") {
  ServerDatabase database;
  const auto url = url_of(database.server(), schema::Role::runtime);
  for (const auto fairness : {Fairness::fifo, Fairness::barging}) {
    Engine holder(url), first(url), second(url);
    const LockOptions options{.reentrance = Reentrance::none, .fairness = fairness};
    auto lock = holder.try_lock("job", options);
    REQUIRE(lock);
    const auto waits = [&](std::size_t count) {
      return eventually([&] { return holder.waiters("job").size() == count; });
    };
    const auto take = [&](Engine& engine) {
      return std::async(std::launch::async, [&engine, options] {
        const auto granted = engine.try_lock_for("job", 2min, options);
        return granted ? number(granted->token()) : 0;
      });
    };
    auto one = take(first);
    CHECK(waits(1));
    auto two = take(second);
    CHECK(waits(2));
    lock->release();
    const auto tokens = std::pair(one.get(), two.get());
    CHECK(tokens.first > 0);
    CHECK(tokens.second > 0);
    if (fairness == Fairness::fifo) CHECK(tokens.first < tokens.second);
    CHECK(waits(0));
    // Whoever is told to go away gives its place back.
    lock = holder.try_lock("job", options);
    REQUIRE(lock);
    CHECK_FALSE(answered([&] { return first.try_lock_for("job", 50ms, options); }));
    CHECK(waits(0));
  }
}

TEST_CASE("with the right to read alone everything can be looked at, and nothing is changed by it") {
  const LaterVersions versions;
  for (const auto& state : states_of_a_table()) {
    CAPTURE(state.name);
    const auto test_database = opener().server_database();
    state.make(*test_database);
    const auto before = everything(*test_database);
    look_in_every_way(test_database->url_of_role({"SELECT"}));
    CHECK(everything(*test_database) == before);
    schema::Options dry;
    dry.dry_run = dry.create_schema = true;
    dry.lock = dry.verify = false;
    const auto url = test_database->url();  // of an owner, who might have written
    schema::up(url, dry);
    static_cast<void>(schema::down(url, 0, dry, true));
    static_cast<void>(schema::repair(url, dry));
    CHECK(everything(*test_database) == before);
  }
}

TEST_CASE("the grants to read are enough to check, and to be told what else is needed") {
  const LaterVersions versions;
  ServerDatabase database;
  const auto url = url_of(database.server(), schema::Role::read_only);
  const auto status = schema::check(url);
  CHECK_MESSAGE(status.state == SchemaState::good, status.message);
  CHECK(schema::dump(url).lines == schema::dump(database->url()).lines);
  CHECK(Engine(url).list().empty());
  const auto thrown = thrown_by([&] { static_cast<void>(schema::down(url, 1)); });
  CHECK_MESSAGE(thrown.fault == Fault::permission, thrown.text);
  CHECK_MESSAGE(thrown.names("GRANT"), thrown.text);
}

TEST_CASE("a role that may not make a guard is told what it needs") {
  ServerDatabase database;
  const auto url = database.server().url_of_role({"SELECT"});
  const auto thrown = thrown_by([&] { schema::make_guard(url, {"", "resource_lock", "token"}); });
  CHECK_MESSAGE(thrown.fault == Fault::permission, thrown.text);
  CHECK_MESSAGE(thrown.names("; needed: GRANT "), thrown.text);
  CHECK_MESSAGE(thrown.names("TRIGGER ON "), thrown.text);
}
