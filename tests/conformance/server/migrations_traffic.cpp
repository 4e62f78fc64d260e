// The promise that an upgrade which has to wait for somebody lets the traffic on the table pass meanwhile.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/later_versions.hpp"
#include "support/proxy.hpp"
#include "support/slowness.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("while an upgrade waits for a transaction on the table, nobody else waits longer than one try of it") {
  const LaterVersions versions;
  const auto test_database = opener().test_database();
  REQUIRE(schema::up(test_database->url(), {}, 1).state == schema::SchemaState::good);
  Admin reader(*test_database);
  reader.run("INSERT INTO resource_lock (name, token) VALUES ('job', 0)");
  reader.run("INSERT INTO resource_lock (name, token) VALUES ('read', 0)");
  reader.block("read");

  constexpr auto ddl_lock_timeout = 1s;  // where it has whole seconds, the shortest
  std::atomic<int> tries = 0, updates = 0;
  std::atomic<bool> done = false;
  std::atomic<std::int64_t> longest = 0;
  schema::Report report;
  std::jthread upgrade([&] {
    schema::Options options;
    options.timeouts.ddl_lock = ddl_lock_timeout;
    options.ddl_retries = 1000;
    options.observer = [&](std::string_view text) { tries += text.find("trying again") != std::string_view::npos; };
    report = schema::up(test_database->url(), options);
    done = true;
  });
  std::jthread traffic([&] {
    Admin admin(*test_database);
    while (!done) {
      const auto begun = BootClock::now();
      admin.run("UPDATE resource_lock SET token = token + 1, expires_at = expires_at + 1 WHERE name = 'job'");
      longest = std::max<std::int64_t>(longest, std::chrono::duration_cast<Duration>(BootClock::now() - begun).count());
      ++updates;
    }
  });
  CHECK(eventually([&] { return tries >= 2; }));
  const int before = updates;
  CHECK(eventually([&] { return updates > before; }));
  CHECK_FALSE(done);
  reader.unblock();
  upgrade.join();
  traffic.join();
  CHECK_MESSAGE(report.state == schema::SchemaState::good, report.message);
  CHECK(Duration{longest} < ddl_lock_timeout + 2s * slowness());
  CHECK(reader.number("SELECT token FROM resource_lock WHERE name = 'job'") == updates);
  CHECK(schema::check(test_database->url()).state == schema::SchemaState::good);
}

TEST_CASE("who looks while the first version is made takes it for no drift, however late its look at the history is") {
  using Call = std::function<schema::SchemaState(const std::string& url)>;
  const Call calls[]{[](const std::string& url) { return schema::check(url).state; },
                     [](const std::string& url) { return schema::up(url).state; }};
  for (const auto& call : calls) {
    const auto test_database = opener().server_database();
    REQUIRE(schema::up(test_database->url(), {}, 1).state == schema::SchemaState::good);
    Admin admin(*test_database);  // as another migrator has it for a moment: a history, and no table yet
    admin.run("DROP VIEW resource_lock_status");
    for (const std::string table : {"_holder", "_waiter", ""}) admin.run("DROP TABLE resource_lock" + table);
    admin.run("DELETE FROM resource_lock_schema_history");

    Proxy proxy(*test_database);
    proxy.delay(150ms * slowness());
    auto state = schema::SchemaState::failed;
    std::jthread looker([&] { state = call(test_database->url_at(proxy.address())); });
    const auto asked_for = [&](std::string_view words) { return proxy.sent().find(words) != std::string::npos; };
    // The catalog; some statements have names in them as hexadecimal digits.
    const std::string history = "resource_lock_schema_history",
                      digits = "7265736f757263655f6c6f636b5f736368656d615f686973746f7279";
    REQUIRE(eventually([&] { return asked_for(history) || asked_for(digits); }));
    proxy.delay(3s * slowness());
    CHECK(schema::up(test_database->url()).state == schema::SchemaState::good);
    CHECK_FALSE(asked_for("steps_done"));  // the history
    proxy.pass();
    looker.join();
    CHECK((state == schema::SchemaState::good || state == schema::SchemaState::pending));
    CHECK(schema::check(test_database->url()).state == schema::SchemaState::good);
  }
}

TEST_CASE("a database that has no connection to lend for more than a second is waited for") {
  const auto test_database = opener().server_database();
  Proxy proxy(*test_database);
  proxy.delay(1200ms);
  schema::Options options;
  options.timeouts.connect = 2min;
  options.observer = [&](std::string_view text) {
    const bool in_vain =
        text.find("again") != std::string_view::npos || text.find("waiting for") != std::string_view::npos;
    CHECK_MESSAGE(!in_vain, text);
    proxy.pass();  // by now it has begun
  };
  const auto report = schema::up(test_database->url_at(proxy.address()), options);
  CHECK_MESSAGE(report.state == schema::SchemaState::good, report.message);
}

TEST_CASE("what a lease comes in between while the tables are taken back is told as it is, and can be made whole") {
  const auto test_database = opener().server_database();
  const auto url = test_database->url();
  REQUIRE(schema::up(url).state == schema::SchemaState::good);
  Admin admin(*test_database), reader(*test_database);
  reader.run("BEGIN");
  CHECK(reader.number("SELECT count(*) FROM resource_lock_waiter") == 0);
  schema::Options options;
  options.timeouts.ddl_lock = 1s;
  options.observer = [&](std::string_view text) {
    if (text.find("trying again") == std::string_view::npos) return;
    if (admin.number("SELECT count(*) FROM resource_lock WHERE name = 'job'") == 0) {
      admin.run("INSERT INTO resource_lock (name, token, owner, expires_at) VALUES ('job', 0, '" +
                std::string(32, 'a') + "', 9000000000000000)");
      reader.run("ROLLBACK");
    }
  };
  const auto down = schema::down(url, 0, options);
  CHECK(down.state == schema::SchemaState::locked);
  CHECK_MESSAGE(down.message.find("1 live lease") != std::string::npos, down.message);
  // Where DDL belongs to a transaction nothing is left of it.
  const bool in_part = opener().name == "mysql";
  CHECK_MESSAGE((down.message.find("while version 1 is not whole") != std::string::npos) == in_part, down.message);
  CHECK(admin.number("SELECT count(*) FROM resource_lock WHERE name = 'job'") == 1);
  const auto up = schema::up(url);
  CHECK_MESSAGE(up.state == schema::SchemaState::good, up.message);
  CHECK(schema::check(url).state == schema::SchemaState::good);
}
