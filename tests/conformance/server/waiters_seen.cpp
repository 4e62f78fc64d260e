// The promise that who waits is seen by the others, and then no longer: where it takes long to write that it does, and
// where its transaction has fenced what another thread has taken.
#include "support/caller.hpp"
#include "support/database.hpp"
#include "support/deadlock.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// From now on it takes so long to write a waiter's row, which is longer than anybody waits for that. dlock_test_late
// says how many have been written.
void slow_down_rows(Database& database, std::chrono::milliseconds by) {
  auto& admin = database.admin();
  admin.run("CREATE TABLE dlock_test_late (n INT)");
  const auto seconds = "(" + std::to_string(by.count()) + " / 1000.0)";
  const std::string when = "CREATE TRIGGER dlock_test_late BEFORE INSERT ON resource_lock_waiter FOR EACH ROW ";
  if (opener().name == "postgresql") {
    admin.run(
        "CREATE FUNCTION dlock_test_late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "INSERT INTO dlock_test_late SELECT 1 FROM pg_sleep" +
        seconds + "; RETURN NEW; END $$");
    admin.run(when + "EXECUTE FUNCTION dlock_test_late()");
  } else {
    admin.run(when + "INSERT INTO dlock_test_late SELECT SLEEP" + seconds);
  }
}

std::string waits_for_b(Engine& engine, Duration wait, TransactionRef* transaction) {
  return outcome([&] {
    return transaction != nullptr ? engine.try_lock_in(*transaction, "B", wait).has_value()
                                  : engine.try_lock_for("B", wait).has_value();
  });
}

}  // namespace

TEST_CASE("a deadlock is found where the waiters' rows are late, of transactions as well") {
  for (const bool in_transaction : {false, true}) {
    INFO("in a transaction: " << in_transaction);
    Database database;
    slow_down_rows(database, 400ms);
    auto engine = database.engine();
    auto a = engine.lock("A");
    HoldsBWantsA other(database.engine());
    Caller caller(database.test_database());
    caller.begin(database.test_database().beginnings().front());
    TransactionRef transaction = caller.native();
    const auto told = waits_for_b(engine, 4min, in_transaction ? &transaction : nullptr);
    caller.run("ROLLBACK");
    a.release();
    const auto theirs = other.join();
    CHECK((told == "granted") != (theirs == "granted"));
    CHECK_MESSAGE((told + theirs).find("deadlock: ") != std::string::npos, told << " and " << theirs);
  }
}

TEST_CASE("a row that is written when its waiter has gone is taken away, long before its time is over") {
  for (const bool in_transaction : {false, true}) {
    INFO("in a transaction: " << in_transaction);
    Database database;
    // Time for a first look and to send the row, and not for its commit.
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(200ms * slowness());
    slow_down_rows(database, wait + 300ms);
    EngineOptions options;
    options.ticket = 1h;
    auto engine = database.engine(options), other = database.engine();
    const auto a = engine.lock("A");
    const auto b = other.lock("B");
    Caller caller(database.test_database());
    caller.begin(database.test_database().beginnings().front());
    TransactionRef transaction = caller.native();
    CHECK(eventually([&] { return waits_for_b(engine, wait, in_transaction ? &transaction : nullptr) == "busy"; }));
    caller.run("ROLLBACK");
    const auto rows_of = [&](const std::string& table) {
      return database.admin().number("SELECT count(*) FROM " + table);
    };
    REQUIRE(eventually([&] { return rows_of("dlock_test_late") > 0; }));
    CHECK(eventually([&] { return rows_of("resource_lock_waiter") == 0; }));
  }
}

TEST_CASE("a deadlock is found where the transaction that waits has fenced a lock that another thread took") {
  Database database;
  auto engine = database.engine();
  auto a = engine.lock("A");
  HoldsBWantsA other(database.engine());
  std::string told;
  Thrown thrown;
  std::thread([&, held = std::move(a)]() mutable {
    thrown = thrown_by([&] {
      Caller caller(database.test_database());
      TransactionRef transaction = caller.native();
      held.with_fence(transaction, [&] { told = waits_for_b(engine, 4min, &transaction); });
    });
  }).join();  // and lets go of A
  const auto theirs = other.join();
  CHECK_MESSAGE(!thrown.fault, thrown.text);
  CHECK((told == "granted") != (theirs == "granted"));
  CHECK_MESSAGE((told + theirs).find("deadlock: ") != std::string::npos, told << " and " << theirs);
}
