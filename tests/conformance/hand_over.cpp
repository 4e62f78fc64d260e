// The promise that a lease goes from hand to hand under the next token, and only where nobody comes first.
#include "support/hands.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

TEST_CASE("a lease is handed over under the next token, with a row as after any grant") {
  Database database;
  const auto table = database.table();
  Hand from(*table, 1), to(*table, 2);
  REQUIRE(from.barge());
  database.admin().run("UPDATE resource_lock SET meta = 'of the one before' WHERE name = 'job'");
  database.admin().age("job", 10min);
  const auto begun = database.admin().acquired_at("job");
  const auto token = from.hand_over(to);
  REQUIRE(token);
  CHECK(number(*token) == number(from.token()) + 1);
  CHECK(database.admin().owner("job") == to.owner());
  CHECK(database.admin().acquired_at("job") > begun);
  CHECK(database.admin().expires_at("job") == database.admin().acquired_at("job") + 1h);
  CHECK(database.admin().reopens_at("job") == 0s);
  CHECK(table->inspect("job", soon())->state == State::held);
  CHECK(table->inspect("job", soon())->metadata == "meta");
  CHECK_FALSE(from.release());
  CHECK(to.release());
}

TEST_CASE("asked again after a lost answer, the same lease is handed over once") {
  Database database;
  const auto table = database.table();
  Hand from(*table, 1), to(*table, 2), other(*table, 3);
  REQUIRE(from.barge());
  const auto token = from.hand_over(to);
  REQUIRE(token);
  const auto begun = database.admin().acquired_at("job");
  CHECK(from.hand_over(to) == token);
  CHECK(database.admin().acquired_at("job") == begun);
  CHECK_FALSE(from.hand_over(other));
  CHECK(to.release());
  CHECK_FALSE(from.hand_over(to));
}

TEST_CASE("a hand-over that is repeated late takes nothing back of what its row has said since") {
  Database database;
  const auto table = database.table();
  Hand from(*table, 1), to(*table, 2);
  REQUIRE(from.barge());
  REQUIRE(from.hand_over(to));
  const std::string actor(32, 'a');
  database.admin().run("UPDATE resource_lock SET meta = 'since', actor = '" + actor + "' WHERE name = 'job'");
  CHECK(from.hand_over(to));
  CHECK(table->inspect("job", soon())->metadata == "since");
  CHECK(database.admin().number("SELECT count(*) FROM resource_lock WHERE name = 'job' AND actor = '" + actor + "'") ==
        1);
  CHECK(to.release());
}

TEST_CASE("a hand-over may keep tokens for who is handed the lease: the row has the last of them") {
  Database database;
  const auto table = database.table();
  Hand from(*table, 1), to(*table, 2), next(*table, 3);
  REQUIRE(from.barge());
  const auto before = number(from.token());
  const auto token = from.hand_over(to, {}, 100);
  REQUIRE(token);
  CHECK(number(*token) == before + 100);
  CHECK(table->inspect("job", soon())->token == *token);
  CHECK(from.hand_over(to, {}, 100) == token);
  CHECK_FALSE(from.hand_over(to, {}, 99));
  CHECK(to.release());
  REQUIRE(next.barge());
  CHECK(number(next.token()) == before + 101);
  CHECK(next.release());
}

TEST_CASE("nothing is handed over after the loss of the lease") {
  Database database;
  const auto table = database.table();
  Hand from(*table, 1), to(*table, 2), thief(*table, 3);
  REQUIRE(from.barge());
  database.admin().expire("job");
  REQUIRE(thief.barge());
  CHECK_FALSE(from.hand_over(to));
  CHECK(database.admin().owner("job") == thief.owner());
  CHECK(thief.release());
  CHECK_FALSE(from.hand_over(to));
}

TEST_CASE("a lease that expired and that nobody took is handed over") {
  Database database;
  const auto table = database.table();
  Hand from(*table, 1), to(*table, 2);
  REQUIRE(from.barge());
  database.admin().expire("job");
  CHECK(from.hand_over(to));
  CHECK(to.release());
}

TEST_CASE("nothing is handed over within the at-least time, and the next holder may have one") {
  Database database;
  const auto table = database.table();
  Hand from(*table, 1), to(*table, 2), last(*table, 3);
  REQUIRE(from.acquire(1h));
  CHECK_FALSE(from.hand_over(to));
  database.admin().run("UPDATE resource_lock SET reopens_at = 1 WHERE name = 'job'");
  REQUIRE(from.hand_over(to, 1h));
  CHECK(database.admin().reopens_at("job") == database.admin().acquired_at("job") + 1h);
  CHECK(from.hand_over(to, 1h));
  CHECK(database.admin().reopens_at("job") == database.admin().acquired_at("job") + 1h);
  CHECK_FALSE(to.hand_over(last));
  CHECK(to.release());
}

TEST_CASE("a row that several hold is handed to nobody") {
  Database database;
  const auto table = database.table();
  Hand from(*table, 1), to(*table, 2);
  REQUIRE(from.barge());
  database.admin().run("UPDATE resource_lock SET mode = 'node' WHERE name = 'job'");
  CHECK_FALSE(from.hand_over(to));
  CHECK(from.release());
}

TEST_CASE("a hand-over respects the queue: refused while a smaller ticket is live, and it ends the ticket") {
  Database database;
  const auto table = database.table();
  Hand from(*table, 1), first(*table, 2), second(*table, 3), without(*table, 4);
  REQUIRE(from.barge());
  first.draw_ticket();
  second.draw_ticket();
  CHECK_FALSE(from.hand_over(without));
  CHECK_FALSE(from.hand_over(second));
  REQUIRE(from.hand_over(first));
  CHECK(database.admin().number("SELECT served_ticket FROM resource_lock WHERE name = 'job'") == 1);
  CHECK_FALSE(first.hand_over(without));
  database.admin().run("UPDATE resource_lock_waiter SET expires_at = 1");
  // Who has no ticket gets it by an acquire, which sees under the lock on the row whether one was drawn meanwhile.
  CHECK_FALSE(first.hand_over(without));
  CHECK(first.release());
  CHECK(without.barge());
  CHECK(without.release());
}
