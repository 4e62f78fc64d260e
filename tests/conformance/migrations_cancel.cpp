// The promise that a caller can have a migration cut off, wherever it waits.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/later_versions.hpp"

#include <doctest/doctest.h>
#include <dlock/schema.hpp>

#include <atomic>
#include <functional>
#include <thread>

using namespace dlock;
using namespace dlock::test;
using schema::SchemaState;

TEST_CASE("a call that waits for what others hold is cut off, changes nothing by halves, and is done by the next one") {
  const LaterVersions versions;
  const std::vector<std::function<schema::Report(const std::string&, const schema::Options&)>> calls{
      [](const std::string& url, const schema::Options& options) { return schema::up(url, options); },
      [](const std::string& url, const schema::Options& options) { return schema::down(url, 0, options, true); },
  };
  for (const auto& call : calls) {
    std::unique_ptr<ServerTestDatabase> server;
    std::unique_ptr<TestDatabase> file;
    if (opener().server_database != nullptr) server = opener().server_database();
    else file = opener().test_database();
    const TestDatabase& test_database = server ? *server : *file;
    REQUIRE(schema::up(test_database.url(), {}, 1).state == SchemaState::good);
    Admin other(test_database);
    other.block("");

    std::stop_source cancel;
    std::atomic<bool> told{false};
    schema::Options options;
    options.cancel = cancel.get_token();
    options.timeouts.ddl_lock = options.timeouts.lock = std::chrono::hours{1};
    options.observer = [&](std::string_view text) { told = told || text.starts_with("waiting"); };
    std::optional<schema::Report> report;
    std::thread caller([&] { report = call(test_database.url(), options); });
    // A server's own wait, or that for the one writer of a file.
    CHECK(eventually([&] { return server ? server->somebody_waits() : told.load(); }));
    cancel.request_stop();
    caller.join();
    CHECK_MESSAGE(report->state == SchemaState::stopped, report->message);
    CHECK_MESSAGE(report->message.find("as asked") != std::string::npos, report->message);
    if (server) CHECK(eventually([&] { return !server->somebody_waits(); }));
    other.unblock();
    CHECK(schema::up(test_database.url()).state == SchemaState::good);
    CHECK(schema::check(test_database.url()).state == SchemaState::good);
  }
}

TEST_CASE("what was cancelled before it began changes nothing; what can be cancelled, and is not, is done") {
  const LaterVersions versions;
  const auto test_database = opener().test_database();
  std::stop_source cancel;
  schema::Options options;
  options.cancel = cancel.get_token();
  CHECK(schema::up(test_database->url(), options, 1).state == SchemaState::good);
  cancel.request_stop();
  CHECK(schema::up(test_database->url(), options).state == SchemaState::stopped);
  CHECK(schema::status(test_database->url()).current == 1);
  CHECK(schema::down(test_database->url(), 0, options).state == SchemaState::stopped);
  CHECK(schema::status(test_database->url()).current == 1);
}
