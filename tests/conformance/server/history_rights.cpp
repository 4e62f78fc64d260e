// Tests that a history needs no right of those who lock, and which rights those need who read and cut it.
#include "support/database.hpp"
#include "types/url.hpp"

#include <doctest/doctest.h>
#include <dlock/history.hpp>
#include <dlock/schema.hpp>

#include <sstream>
#include <string>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;
using schema::SchemaState;

namespace {

// Gives a role what is printed for it now.
void grant(ServerTestDatabase& test_database, schema::Role role, const std::string& url) {
  std::istringstream grants(schema::grants(test_database.url(), role, Url::parse(url).user.value()));
  Admin admin(test_database);
  for (std::string statement; std::getline(grants, statement);) admin.run(statement.substr(0, statement.find(';')));
}

}  // namespace

TEST_CASE("who has the runtime's rights from before locks on when a history is made, and leaves rows in it") {
  ServerDatabase database;
  const auto url = database.server().url_of_role({});
  grant(database.server(), schema::Role::runtime, url);
  Engine engine(url, {.timeouts = {.release = 10s * slowness()}});
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  const auto made = schema::make_history(database->url());
  REQUIRE_MESSAGE(made.state == SchemaState::good, made.message);
  CHECK(lock->release() == Released::freed);
  auto reader = engine.try_lock("job", {.mode = Mode::shared, .renew = false});
  REQUIRE(reader);
  CHECK(reader->release() == Released::freed);
  auto stuck = engine.try_lock("job", {.renew = false});
  CHECK(engine.force_release("job", stuck->token()));
  CHECK(database->admin().number("SELECT count(*) FROM resource_lock_history") == 3);

  const auto refused = thrown_by([&] { engine.history("job"); });
  CHECK_MESSAGE((refused.fault == Fault::permission || refused.fault == Fault::schema), refused.text);
  grant(database.server(), schema::Role::runtime, url);
  CHECK(schema::check(url, {}, schema::Role::runtime).state == SchemaState::good);
  CHECK(engine.history("job").size() == 3);
  Engine cutting(url, {.reaper = {.retention = 1s, .grace = 1s}, .history = 2});
  CHECK(cutting.reap().history == 1);
  CHECK(engine.history("job").size() == 2);
}

TEST_CASE("who only looks is granted to read a history, and not to cut it") {
  ServerDatabase database;
  CHECK(schema::make_history(database->url()).changed);
  auto engine = database->engine();
  engine.try_lock("job").reset();
  const auto url = database.server().url_of_role({});
  grant(database.server(), schema::Role::read_only, url);
  Engine looking(url);
  CHECK(looking.history("job").size() == 1);
  CHECK(schema::check(url, {}, schema::Role::read_only).state == SchemaState::good);
  const auto lacking = thrown_by([&] { static_cast<void>(schema::check(url, {}, schema::Role::runtime)); });
  CHECK(lacking.fault == Fault::permission);
  CHECK_MESSAGE(lacking.names("DELETE on resource_lock_history"), lacking.text);
}
