// The promise that a text of several statements which somebody cuts short in the middle is over soon, and keeps nothing
// locked.
#include "api/open.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a text that is cancelled between two of its statements is over long before its time, and holds no row") {
  ServerDatabase database;
  database->admin().run("CREATE TABLE app (n bigint PRIMARY KEY)");
  const auto door = api::resolve(database->url(), {});
  std::string text = "BEGIN; INSERT INTO app VALUES (1)";
  for (int i = 0; i < 20'000; ++i) text += "; SELECT 1 UNION SELECT 2 ORDER BY 1";
  // About one in thirty is cut off where MySQL tells nobody.
  for (int round = 0; round < 100; ++round) {
    auto connection = door.connector->connect(soon());
    const auto canceller = door.connector->canceller(*connection, soon());
    std::jthread cancels([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) try {
          canceller->cancel(soon());
        } catch (const Failure&) {  // the next one
        }
    });
    const auto begun = std::chrono::steady_clock::now();
    try {
      connection->script(text, later(BootClock::now(), 2 * far_longer()));
      FAIL("it was not cancelled");
    } catch (const Failure&) {}
    REQUIRE(std::chrono::steady_clock::now() - begun < far_longer());
    cancels.request_stop();
    cancels.join();
    connection.reset();
    database->admin().run("INSERT INTO app VALUES (1)");
    database->admin().run("DELETE FROM app");
  }
}

TEST_CASE("a text that takes its time in the middle, while nothing is heard of it, is waited for") {
  ServerDatabase database;
  database->admin().run("CREATE TABLE app (n bigint PRIMARY KEY)");
  const auto connection = api::resolve(database->url(), {}).connector->connect(soon());
  // It is looked into after one and a half seconds, and after three more.
  connection->script("BEGIN; INSERT INTO app VALUES (1); " + database.server().sleep_for(6s) + "; COMMIT", soon());
  CHECK(connection->usable());
  CHECK(database->admin().number("SELECT count(*) FROM app") == 1);
}
