// The promise that a free row which was locked before, the common case, is granted by the same rules as any
// other, though databases have a shorter way to it.
#include "store/reaper_table.hpp"
#include "store/waiter_table.hpp"
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

std::string owner(int number) { return std::string(31, '0') + static_cast<char>('a' + number); }

// A table whose rows were locked by several before. With one connection many requests travel in one statement.
struct Used {
  static constexpr int names = 12;

  Used() {
    for (int i = 0; i < names; ++i)
      for (int owner_of_old = 10; owner_of_old < 13; ++owner_of_old) {
        const auto token = acquire(name(i), owner(owner_of_old));
        REQUIRE(token);
        REQUIRE(release(name(i), owner(owner_of_old), *token));
      }
  }

  // What a test has proved by holding it is nobody's when it ends.
  ~Used() { database.admin().run("UPDATE resource_lock SET owner = NULL WHERE owner IS NOT NULL"); }

  static std::string name(int i) { return "job " + std::to_string(i); }

  std::optional<Token> acquire(const std::string& text, const std::string& by, Duration at_least = {}) {
    return ask(text, by, at_least, false).token;
  }
  // As who heard of its release.
  store::Granted acquire_freed(const std::string& text, const std::string& by) { return ask(text, by, {}, true); }
  store::Granted ask(const std::string& text, const std::string& by, Duration at_least, bool freed) {
    const Name name(text);
    store::AcquireRequest ask{name, by, "web3", "nightly", "fedcba9876543210fedcba9876543210", 1h, at_least, "{}"};
    ask.freed = freed;
    return patiently([&] { return table->acquire(ask, soon()); });
  }
  bool release(const std::string& text, const std::string& by, Token token) {
    const store::LeaseKey key{text, by, token};
    return patiently([&]() -> bool { return table->release(key, soon()); });
  }

  // Asks for all names at once, each as this owner.
  std::vector<std::optional<Token>> acquire_all(const std::string& by) {
    std::vector<std::optional<Token>> tokens(names);
    in_parallel(names, [&](int i) { tokens[static_cast<std::size_t>(i)] = acquire(name(i), by); });
    return tokens;
  }

  Database database{};
  const std::unique_ptr<store::LockTable> table = open_table(database.url(), 1);
};

}  // namespace

TEST_CASE("a free row is granted with everything that was asked for, and as a row that is made") {
  Used used;
  const auto before = used.database.admin().token("job 0");
  const auto token = used.acquire("job 0", owner(0), 30min);
  REQUIRE(token);
  CHECK(number(*token) == number(before) + 1);
  auto& admin = used.database.admin();
  const auto begun = admin.acquired_at("job 0");
  CHECK(admin.owner("job 0") == owner(0));
  CHECK(admin.expires_at("job 0") == begun + 1h);
  CHECK(admin.reopens_at("job 0") == begun + 30min);
  const auto row = used.table->inspect("job 0", soon());
  REQUIRE(row);
  CHECK(row->node == "web3");
  CHECK(row->label == "nightly");
  CHECK(row->metadata == "{}");
  CHECK(row->lease == 1h);
  CHECK(admin.text("SELECT actor FROM resource_lock WHERE name = 'job 0'") == "fedcba9876543210fedcba9876543210");
  CHECK(used.acquire("job 0", owner(0), 30min) == token);  // asked once more, after an answer that was lost
  CHECK(admin.acquired_at("job 0") == begun);
  CHECK_FALSE(used.acquire("job 0", owner(1)));
  CHECK(used.release("job 0", owner(0), *token));
  const auto other = used.acquire("job 1", owner(0), 30min);
  REQUIRE(other);
  CHECK(used.release("job 1", owner(0), *other));
  for (const auto* name : {"job 0", "job 1"}) CHECK_FALSE(used.acquire(name, owner(1)));  // closed for half an hour
}

TEST_CASE("who heard of a release is granted the row, or told to look at it, and never what is somebody else's") {
  Used used;
  auto& admin = used.database.admin();
  const auto before = admin.token("job 0");
  const auto granted = used.acquire_freed("job 0", owner(0));
  if (granted.token) {
    CHECK(number(*granted.token) == number(before) + 1);
    CHECK(admin.owner("job 0") == owner(0));
    CHECK(admin.expires_at("job 0") == admin.acquired_at("job 0") + 1h);
  } else {
    REQUIRE(used.acquire("job 0", owner(0)));
  }
  for (const auto& other : {owner(1), owner(2)}) {
    const auto refused = used.acquire_freed("job 0", other);
    CHECK_FALSE(refused.token);
    CHECK_FALSE(refused.row_locked);  // which is seen by who holds it, and nobody has to look into that
  }
  CHECK(admin.owner("job 0") == owner(0));
  // Closed for a while; freed by the asker itself, whose late attempt this may be; for the first in a queue.
  const auto closed = used.acquire("job 1", owner(9), 30min);
  REQUIRE(closed);
  REQUIRE(used.release("job 1", owner(9), *closed));
  CHECK_FALSE(used.acquire_freed("job 1", owner(0)).token);
  const auto given_back = used.acquire("job 2", owner(0));
  REQUIRE(given_back);
  REQUIRE(used.release("job 2", owner(0), *given_back));
  CHECK_FALSE(used.acquire_freed("job 2", owner(0)).token);
  const auto fifth = owner(5);
  const store::Wait wait{
      "job 3", fifth,       "web3", "nightly", "fedcba9876543210fedcba9876543210", store::Wait::Discipline::fifo,
      1h,      std::nullopt};
  REQUIRE(patiently([&] { return used.table->waiting().draw_ticket(wait, soon()); }) > 0);
  CHECK_FALSE(used.acquire_freed("job 3", owner(0)).token);
  // What nobody has locked before is left to who looks.
  const auto fresh = used.acquire_freed("fresh", owner(0)).token;
  CHECK(used.acquire("fresh", owner(0)).has_value());
  CHECK((!fresh || admin.token("fresh") == *fresh));
}

TEST_CASE("of many free rows each is granted to one, with the next token, and what is not free to nobody") {
  Used used;
  auto& admin = used.database.admin();
  std::array<Token, Used::names> before{};
  for (int i = 0; i < Used::names; ++i) before[static_cast<std::size_t>(i)] = admin.token(Used::name(i));
  REQUIRE(used.acquire(Used::name(1), owner(9)));
  const auto closed = used.acquire(Used::name(2), owner(9), 30min);
  REQUIRE(closed);
  REQUIRE(used.release(Used::name(2), owner(9), *closed));
  const auto given_back = used.acquire(Used::name(3), owner(0));
  REQUIRE(given_back);
  REQUIRE(used.release(Used::name(3), owner(0), *given_back));
  const auto expired = used.acquire(Used::name(4), owner(9));
  REQUIRE(expired);
  admin.expire(Used::name(4));
  admin.run("DELETE FROM resource_lock WHERE name = '" + Used::name(5) + "'");
  const auto tokens = used.acquire_all(owner(0));
  for (int i = 0; i < Used::names; ++i) {
    CAPTURE(i);
    const auto& token = tokens[static_cast<std::size_t>(i)];
    CHECK(token.has_value() == (i == 0 || i > 3));
    if (!token) continue;
    if (i != 5) CHECK(number(*token) == number(before[static_cast<std::size_t>(i)]) + (i == 4 ? 2 : 1));
    CHECK(admin.owner(Used::name(i)) == owner(0));
  }
  const auto again = used.acquire_all(owner(0));
  CHECK(again == tokens);
  const auto others = used.acquire_all(owner(1));
  for (int i = 0; i < Used::names; ++i) CHECK(others[static_cast<std::size_t>(i)].has_value() == (i == 3));
}

TEST_CASE("a free row with a queue, or that is back with a token below the floor, is no common case") {
  Used used;
  auto& admin = used.database.admin();
  Hand first(*used.table, 1, Used::name(0)), second(*used.table, 2, Used::name(1));
  REQUIRE(first.draw_ticket() > 0);
  REQUIRE(second.draw_ticket() > 0);
  CHECK_FALSE(used.acquire(Used::name(0), owner(0)));
  // As an insert leaves it that read the floor before it was raised, and was given back.
  admin.run("UPDATE resource_lock SET token = 1000000 WHERE name = ''");
  for (const auto& name : {Used::name(2), Used::name(3)}) {
    admin.run("DELETE FROM resource_lock WHERE name = '" + name + "'");
    admin.run("INSERT INTO resource_lock (name, token, actor, expires_at) VALUES ('" + name + "', 4, '', 1)");
  }
  const auto alone = used.acquire(Used::name(2), owner(0));
  REQUIRE(alone);
  CHECK(number(*alone) > 1'000'000);
  const auto tokens = used.acquire_all(owner(1));
  CHECK_FALSE(tokens[0]);
  CHECK_FALSE(tokens[1]);
  CHECK_FALSE(tokens[2]);
  REQUIRE(tokens[3]);
  CHECK(number(*tokens[3]) > 1'000'000);
  // Its token is above the floor now, as the row says where that is looked at; and who queues does so behind it.
  CHECK(admin.number("SELECT next_ticket - served_ticket FROM resource_lock WHERE name = '" + Used::name(3) + "'") ==
        0);
  if (used.database.test_database().url().starts_with("mysql:"))
    CHECK(admin.number("SELECT served_ticket FROM resource_lock WHERE name = '" + Used::name(3) + "'") == 1);
  Hand third(*used.table, 3, Used::name(3));
  REQUIRE(third.draw_ticket() > 0);
  REQUIRE(used.release(Used::name(3), owner(1), *tokens[3]));
  CHECK_FALSE(used.acquire(Used::name(3), owner(2)));
}

TEST_CASE("a free row that is asked for twice is one grant, whose lease begins with the second time") {
  Used used;
  auto& admin = used.database.admin();
  const auto tokens = used.acquire_all(owner(0));
  for (int i = 0; i < Used::names; ++i) admin.age(Used::name(i), 50min);
  const auto aged = admin.expires_at(Used::name(0));
  // As after an answer that was lost, while the names are still thought to be free.
  CHECK(used.acquire_all(owner(0)) == tokens);
  for (int i = 0; i < Used::names; ++i) {
    CHECK(tokens[static_cast<std::size_t>(i)]);
    CHECK(admin.expires_at(Used::name(i)) > aged + 40min);
  }
}

TEST_CASE("a row that another than its holder has ended, who may have come too late for the floor, goes on above it") {
  Used used;
  auto& admin = used.database.admin();
  admin.run("UPDATE resource_lock SET token = 1000000 WHERE name = ''");
  const auto ended_by = [&](int i, auto end) {
    CAPTURE(i);
    const auto token = used.acquire(Used::name(i), owner(0));
    REQUIRE(token);
    admin.run("UPDATE resource_lock SET token = 4 WHERE name = '" + Used::name(i) + "'");
    end(Used::name(i));
    const auto next = used.acquire(Used::name(i), owner(1));
    REQUIRE(next);
    CHECK(number(*next) > 1'000'000);
  };
  ended_by(0, [&](const std::string& name) { used.table->withdraw(name, owner(0), soon()); });
  ended_by(1, [&](const std::string& name) { CHECK(used.table->force_release(name, Token{4}, {}, soon())); });
  ended_by(2, [&](const std::string& name) {
    admin.expire(name);
    CHECK(used.table->reaping().settle(name, Token{4}, owner(9), soon()));
  });
}

TEST_CASE("whoever asks for free rows at once, alone or together: one of them has each") {
  Used used;
  constexpr int askers = 6, rounds = 5;
  std::vector<std::unique_ptr<store::LockTable>> tables;
  for (int i = 0; i < askers; ++i) tables.push_back(open_table(used.database.url(), i % 2 == 0 ? 1 : 4));
  std::atomic<int> clashes{0}, granted{0};
  std::array<std::atomic<int>, Used::names> inside{};
  for (int round = 0; round < rounds; ++round)
    in_parallel(askers * Used::names, [&](int i) {
      auto& table = *tables[static_cast<std::size_t>(i % askers)];
      const int which = i / askers;
      const Name name(Used::name(which));
      const auto by = std::string(28, '1') + static_cast<char>('a' + i % askers) + static_cast<char>('a' + which) +
                      static_cast<char>('a' + round) + '0';
      const store::AcquireRequest ask{name, by, "web3", "", by, 1h, {}, ""};
      const auto token = patiently([&] { return table.acquire(ask, soon()); }).token;
      if (!token) return;
      ++granted;
      if (inside[static_cast<std::size_t>(which)]++ != 0) ++clashes;
      --inside[static_cast<std::size_t>(which)];
      const store::LeaseKey key{name.text(), by, *token};
      if (!patiently([&]() -> bool { return table.release(key, soon()); })) ++clashes;
    });
  CHECK(clashes == 0);
  CHECK(granted >= Used::names);
  CHECK(used.database.admin().held() == 0);
  // A token for each grant, and none twice.
  std::int64_t sum = 0;
  for (int i = 0; i < Used::names; ++i) sum += number(used.database.admin().token(Used::name(i)));
  CHECK(sum - Used::names * number(used.database.admin().floor()) == 3 * Used::names + granted);
}
