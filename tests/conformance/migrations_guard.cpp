// The promise that a guarded table refuses what was written with an old fencing token.
#include "dialects/dialect.hpp"
#include "support/database.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <dlock/guard.hpp>

#include <atomic>
#include <future>

using namespace dlock;
using namespace dlock::test;
using schema::SchemaState;
using namespace std::chrono_literals;

namespace {

const schema::GuardedColumn fence{"", "orders", "last_fence"};

std::string identifier(std::string_view name) {
  for (const auto* dialect : dialects::all())
    if (dialect->name() == opener().name) return dialect->quote(name);
  return std::string(name);
}

// A table with the rows 1, which has no token, and 2, which has 5.
struct Orders {
  Orders() : test_database(opener().test_database()), admin(*test_database) {
    admin.run("CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, total BIGINT, last_fence BIGINT)");
    admin.run("INSERT INTO orders (id, total, last_fence) VALUES (1, 0, NULL), (2, 0, 5)");
  }
  explicit Orders(const schema::GuardedColumn& column) : Orders() {
    const auto made = schema::make_guard(test_database->url(), column);
    REQUIRE_MESSAGE(made.state == SchemaState::good, made.message);
    REQUIRE(made.changed);
  }
  long long total(int id) { return admin.number(fmt::format("SELECT total FROM orders WHERE id = {}", id)); }
  long long token(int id) { return admin.number(fmt::format("SELECT last_fence FROM orders WHERE id = {}", id)); }

  std::unique_ptr<TestDatabase> test_database;
  Admin admin;
};

// What the database says to it; empty: nothing.
std::string refusal(Admin& admin, const std::string& sql) {
  try {
    admin.run(sql);
  } catch (const std::exception& error) { return error.what(); }
  return {};
}

bool stale(const std::string& text, std::string_view table = "orders") {
  const auto begin = text.find("stale fencing token");
  return begin != std::string::npos && text.find(fmt::format("for table {}", table), begin) != std::string::npos;
}

}  // namespace

TEST_CASE("a write with a smaller token is refused and stores nothing; an equal or a larger one is let in") {
  Orders orders(fence);
  const auto refused = refusal(orders.admin, "UPDATE orders SET total = 10, last_fence = 4 WHERE id = 2");
  CHECK_MESSAGE(stale(refused), refused);
  if (opener().server_database != nullptr) CHECK_MESSAGE(refused.find("4 < 5") != std::string::npos, refused);
  CHECK(orders.total(2) == 0);
  CHECK(orders.token(2) == 5);
  CHECK(refusal(orders.admin, "UPDATE orders SET total = 20, last_fence = 5 WHERE id = 2").empty());
  CHECK(refusal(orders.admin, "UPDATE orders SET total = 30, last_fence = 9000000000000000000 WHERE id = 2").empty());
  CHECK(orders.total(2) == 30);
  CHECK(orders.token(2) == 9000000000000000000);
  CHECK(stale(refusal(orders.admin, "UPDATE orders SET last_fence = 8999999999999999999 WHERE id = 2")));
}

TEST_CASE("one row with a newer token refuses the whole statement") {
  Orders orders(fence);
  CHECK(stale(refusal(orders.admin, "UPDATE orders SET total = 10, last_fence = 4")));
  CHECK(orders.admin.number("SELECT sum(total) FROM orders") == 0);
  CHECK(orders.admin.number("SELECT count(*) FROM orders WHERE last_fence IS NULL") == 1);
}

TEST_CASE("a row that was never fenced takes any token, and one that was keeps it") {
  Orders orders(fence);
  CHECK(refusal(orders.admin, "UPDATE orders SET total = 1, last_fence = NULL WHERE id = 1").empty());
  CHECK(refusal(orders.admin, "UPDATE orders SET total = 2, last_fence = 1 WHERE id = 1").empty());
  const auto refused = refusal(orders.admin, "UPDATE orders SET total = 3, last_fence = NULL WHERE id = 1");
  CHECK_MESSAGE(stale(refused), refused);
  CHECK(orders.total(1) == 2);
  CHECK(orders.token(1) == 1);
}

TEST_CASE("what brings no token is let in, and so are new rows and a DELETE") {
  Orders orders(fence);
  CHECK(refusal(orders.admin, "UPDATE orders SET total = 7 WHERE id = 2").empty());
  CHECK(orders.token(2) == 5);
  CHECK(refusal(orders.admin, "INSERT INTO orders (id, total, last_fence) VALUES (3, 0, 1)").empty());
  CHECK(refusal(orders.admin, "DELETE FROM orders WHERE id = 2").empty());
  CHECK(refusal(orders.admin, "INSERT INTO orders (id, total, last_fence) VALUES (2, 0, 1)").empty());
}

TEST_CASE(
    "an insert that finds the row there is an update of it; neither it nor a request to ignore errors gets past") {
  Orders orders(fence);
  // Each database knows some of these; what it does not know is refused too.
  int stale_ones = 0;
  for (const std::string statement : {"INSERT INTO orders (id, total, last_fence) VALUES (2, 9, 4) "
                                      "ON CONFLICT (id) DO UPDATE SET total = 9, last_fence = excluded.last_fence",
                                      "INSERT INTO orders (id, total, last_fence) VALUES (2, 9, 4) "
                                      "ON DUPLICATE KEY UPDATE total = 9, last_fence = VALUES(last_fence)",
                                      "UPDATE IGNORE orders SET total = 9, last_fence = 4 WHERE id = 2",
                                      "UPDATE OR IGNORE orders SET total = 9, last_fence = 4 WHERE id = 2",
                                      "UPDATE OR REPLACE orders SET total = 9, last_fence = 4 WHERE id = 2"}) {
    const auto refused = refusal(orders.admin, statement);
    CHECK_MESSAGE(!refused.empty(), statement);
    stale_ones += stale(refused);
    CHECK(orders.total(2) == 0);
    CHECK(orders.token(2) == 5);
  }
  CHECK(stale_ones >= 1);
}

TEST_CASE("REPLACE is a DELETE and an INSERT: the guard lets it in, as the docs say") {
  Orders orders(fence);
  const auto refused = refusal(orders.admin, "REPLACE INTO orders (id, total, last_fence) VALUES (2, 9, 4)");
  CHECK(orders.token(2) == (refused.empty() ? 4 : 5));
  CHECK_FALSE(stale(refused));
}

TEST_CASE("of two transactions the one with the smaller token that comes second is refused, whatever it had read") {
  for (const auto& beginning : opener().test_database()->beginnings()) {
    CAPTURE(beginning.name);
    Orders orders(fence);
    orders.admin.run(orders.test_database->begin_writing());
    orders.admin.run("UPDATE orders SET total = 70, last_fence = 7 WHERE id = 2");
    std::atomic<bool> has_read = false;
    std::atomic<long long> read = 0;
    auto second = std::async(std::launch::async, [&] {
      Admin admin(*orders.test_database);
      try {
        for (const auto& statement : beginning.statements) admin.run(statement);
        read = admin.number("SELECT last_fence FROM orders WHERE id = 2");
        has_read = true;
        admin.run("UPDATE orders SET total = 60, last_fence = 6 WHERE id = 2");
        admin.run("COMMIT");
      } catch (const std::exception& error) { return std::string(error.what()); }
      return std::string();
    });
    // A server lets it read before the first has committed.
    const bool waits = opener().server_database != nullptr && beginning.name != "SERIALIZABLE";
    if (waits) CHECK(eventually([&] { return has_read.load(); }));
    if (waits) CHECK(read == 5);
    if (waits) CHECK(second.wait_for(50ms) == std::future_status::timeout);
    orders.admin.run("COMMIT");
    const auto refused = second.get();
    if (beginning.early_snapshot) CHECK_FALSE(refused.empty());
    else CHECK_MESSAGE(stale(refused), refused);
    if (waits && !beginning.early_snapshot) CHECK_MESSAGE(refused.find("6 < 7") != std::string::npos, refused);
    CHECK(orders.total(2) == 70);
    CHECK(orders.token(2) == 7);
  }
}

TEST_CASE("a guard is made once, by however many at once, and its statements may be run again") {
  Orders orders;
  std::atomic<int> good = 0;
  in_parallel(4, [&](int) {
    schema::Options options;
    options.timeouts.ddl_lock = far_longer();
    const auto made = schema::make_guard(orders.test_database->url(), fence, options);
    CHECK_MESSAGE(made.state == SchemaState::good, made.message);
    good += made.state == SchemaState::good;
  });
  CHECK(good == 4);
  const auto again = schema::make_guard(orders.test_database->url(), fence);
  CHECK_FALSE(again.changed);
  CHECK_MESSAGE(again.message.find("orders.last_fence is guarded already") != std::string::npos, again.message);
  CHECK(stale(refusal(orders.admin, "UPDATE orders SET last_fence = 4 WHERE id = 2")));
}

TEST_CASE("a guard that was taken away refuses nothing, and leaves nothing behind") {
  Orders orders(fence);
  const auto dropped = schema::drop_guard(orders.test_database->url(), fence);
  CHECK(dropped.state == SchemaState::good);
  CHECK(dropped.changed);
  CHECK(refusal(orders.admin, "UPDATE orders SET last_fence = 4 WHERE id = 2").empty());
  CHECK_FALSE(schema::drop_guard(orders.test_database->url(), fence).changed);
  CHECK(schema::make_guard(orders.test_database->url(), fence).changed);
}

TEST_CASE("a dry run of a guard says what would be done, and changes nothing") {
  Orders orders;
  schema::Options options;
  options.dry_run = true;
  const auto planned = schema::make_guard(orders.test_database->url(), fence, options);
  CHECK(planned.state == SchemaState::good);
  CHECK(planned.changed);
  CHECK(planned.sql.find("CREATE TRIGGER") != std::string::npos);
  CHECK(refusal(orders.admin, "UPDATE orders SET last_fence = 4 WHERE id = 2").empty());
}

TEST_CASE("a table, a column or a type that cannot be guarded is named with the rule") {
  Orders orders;
  orders.admin.run("ALTER TABLE orders ADD COLUMN note VARCHAR(20)");
  orders.admin.run("CREATE VIEW seen AS SELECT id, last_fence FROM orders");
  const auto why = [&](const schema::GuardedColumn& column) {
    const auto thrown = thrown_by([&] { schema::make_guard(orders.test_database->url(), column); });
    CHECK_MESSAGE(thrown.fault == Fault::misuse, thrown.text);
    return thrown.text;
  };
  CHECK(why({"", "invoices", "last_fence"}).find("there is no table \"invoices\"") != std::string::npos);
  CHECK(why({"nowhere", "orders", "last_fence"}).find("in the schema \"nowhere\"") != std::string::npos);
  CHECK(why({"", "orders", "fence"}).find("has no column \"fence\"; it has id, total, last_fence") !=
        std::string::npos);
  CHECK(why({"", "orders", "Last_Fence"}).find("it is spelled \"last_fence\" there") != std::string::npos);
  CHECK(why({"", "orders", "note"}).find("needs a 64-bit integer") != std::string::npos);
  CHECK(why({"", "seen", "last_fence"}).find("\"seen\" is a view") != std::string::npos);
  CHECK(why({"", "orders", std::string(300, 'x')}).find("300 characters in 300 bytes") != std::string::npos);
  CHECK(why({"", "", "last_fence"}).find("the table \"\" is empty") != std::string::npos);
  CHECK(why({"", "or\nders", "last_fence"}).find("contains a control character") != std::string::npos);
  CHECK(why({"", "orders", "last\xff"}).find("is not valid UTF-8") != std::string::npos);
}

TEST_CASE("names with quotes, blanks, placeholders and letters beyond ASCII are names and nothing else") {
  const auto test_database = opener().test_database();
  Admin admin(*test_database);
  const schema::GuardedColumn odd{"", R"(o'd"d` {{lock}} $1 ?; -- ä)", test_database->odd_column()};
  const auto table = identifier(odd.table), column = identifier(odd.column);
  admin.run(fmt::format("CREATE TABLE {} (id BIGINT NOT NULL PRIMARY KEY, {} BIGINT)", table, column));
  admin.run(fmt::format("INSERT INTO {} VALUES (1, 5)", table));
  CHECK(schema::make_guard(test_database->url(), odd).changed);
  CHECK_FALSE(schema::make_guard(test_database->url(), odd).changed);
  const auto refused = refusal(admin, fmt::format("UPDATE {} SET {} = 4", table, column));
  CHECK_MESSAGE(stale(refused, odd.table), refused);
  CHECK(refusal(admin, fmt::format("UPDATE {} SET {} = 6", table, column)).empty());
  CHECK(schema::drop_guard(test_database->url(), odd).changed);
  CHECK(refusal(admin, fmt::format("UPDATE {} SET {} = 4", table, column)).empty());
}

TEST_CASE("a message has room for the longest names and tokens") {
  const auto test_database = opener().test_database();
  Admin admin(*test_database);
  const std::string table(63, 't'), column(63, 'c');
  admin.run(fmt::format("CREATE TABLE {} (id BIGINT NOT NULL PRIMARY KEY, {} BIGINT)", table, column));
  admin.run(fmt::format("INSERT INTO {} VALUES (1, 9000000000000000001)", table));
  CHECK(schema::make_guard(test_database->url(), {"", table, column}).changed);
  const auto refused = refusal(admin, fmt::format("UPDATE {} SET {} = 9000000000000000000", table, column));
  CHECK_MESSAGE(refused.find("stale fencing token") != std::string::npos, refused);
  CHECK_MESSAGE(refused.find("for table ttt") != std::string::npos, refused);
}

TEST_CASE("two columns of a table are guarded each for itself") {
  Orders orders(fence);
  orders.admin.run("ALTER TABLE orders ADD COLUMN other BIGINT");
  CHECK(schema::make_guard(orders.test_database->url(), {"", "orders", "other"}).changed);
  CHECK(refusal(orders.admin, "UPDATE orders SET other = 9 WHERE id = 2").empty());
  CHECK(stale(refusal(orders.admin, "UPDATE orders SET other = 8 WHERE id = 2")));
  CHECK(schema::drop_guard(orders.test_database->url(), {"", "orders", "other"}).changed);
  CHECK(stale(refusal(orders.admin, "UPDATE orders SET last_fence = 4 WHERE id = 2")));
}

TEST_CASE("what was no token before the guard may stay as it is, or give way to one") {
  Orders orders;
  // Only where a column takes whatever is written to it: where a value has a type of its own.
  if (!refusal(orders.admin, "UPDATE orders SET last_fence = 'none' WHERE id = 2 AND typeof(total) = 'integer'")
           .empty())
    return;
  CHECK(schema::make_guard(orders.test_database->url(), fence).changed);
  CHECK(refusal(orders.admin, "UPDATE orders SET total = 1 WHERE id = 2").empty());
  const auto refused = refusal(orders.admin, "UPDATE orders SET last_fence = 'other' WHERE id = 2");
  CHECK_MESSAGE(refused.find("not a fencing token for table orders") != std::string::npos, refused);
  CHECK(refusal(orders.admin, "UPDATE orders SET total = 2, last_fence = 7 WHERE id = 2").empty());
  CHECK(orders.total(2) == 2);
  CHECK(stale(refusal(orders.admin, "UPDATE orders SET last_fence = 6 WHERE id = 2")));
  CHECK_FALSE(refusal(orders.admin, "UPDATE orders SET last_fence = 'none' WHERE id = 2").empty());
  CHECK(orders.token(2) == 7);
}

TEST_CASE("a column of a domain is guarded as one of its type is, and once") {
  Orders orders;
  // Only where there are domains.
  if (!refusal(orders.admin, "CREATE DOMAIN token AS bigint").empty()) return;
  orders.admin.run("ALTER TABLE orders ALTER COLUMN last_fence TYPE token");
  CHECK(schema::make_guard(orders.test_database->url(), fence).changed);
  CHECK_FALSE(schema::make_guard(orders.test_database->url(), fence).changed);
  CHECK(stale(refusal(orders.admin, "UPDATE orders SET last_fence = 4 WHERE id = 2")));
  CHECK(refusal(orders.admin, "UPDATE orders SET last_fence = 6 WHERE id = 2").empty());
}
