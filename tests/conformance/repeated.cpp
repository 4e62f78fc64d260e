// The promise that a statement whose answer was lost can be sent again and changes nothing more.
#include "support/database.hpp"
#include "support/eventually.hpp"
#include "support/hands.hpp"

#include <doctest/doctest.h>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// The statements of one owner on one name, each as often as a test wants.
struct Sender {
  explicit Sender(Database& database, std::string_view owner = "0123456789abcdef0123456789abcdef")
      : table(database.table()), owner_(owner) {}

  std::optional<Token> acquire(Duration lease = 30s, Duration at_least = {}) {
    const store::AcquireRequest ask{name_, owner_,   "node", "label", "fedcba9876543210fedcba9876543210",
                                    lease, at_least, ""};
    return table->acquire(ask, soon()).token;
  }
  store::LeaseKey claim(Token token, Duration lease = 30s) const { return {name_.text(), owner_, token, lease}; }
  bool release(Token token) {
    const auto one = claim(token);
    return table->release(one, soon());
  }
  store::Renewal renew(Token token, Duration lease = 30s) {
    const auto one = claim(token, lease);
    return table->renew({&one, 1}, soon()).at(0);
  }
  static Deadline soon() { return later(BootClock::now(), 1min); }

  const std::unique_ptr<store::LockTable> table;

 private:
  const Name name_{"job"};
  const std::string owner_;
};

}  // namespace

TEST_CASE("a repeated acquire answers the same token and keeps the beginning of the grant") {
  Database database;
  Sender holder(database);
  const auto token = holder.acquire(30s, 10s);
  REQUIRE(token);
  const auto begun = database.admin().acquired_at("job");
  const auto reopens = database.admin().reopens_at("job");
  for (int i = 0; i < 3; ++i) CHECK(holder.acquire(30s, 10s) == token);
  CHECK(database.admin().acquired_at("job") == begun);
  CHECK(database.admin().reopens_at("job") == reopens);
  CHECK(reopens == begun + 10s);
  CHECK(holder.release(*token));
}

TEST_CASE("an acquire that arrives again late does not make the holder lose its lease") {
  Database database;
  Sender holder(database);
  const auto token = holder.acquire();
  REQUIRE(token);
  CHECK(holder.renew(*token) == store::Renewed::yes);
  CHECK(holder.acquire() == token);
  CHECK(holder.renew(*token) == store::Renewed::yes);
  CHECK(holder.release(*token));
}

TEST_CASE("an acquire repeated after its lease expired, with nobody in between, is the same grant") {
  Database database;
  Sender holder(database);
  const auto token = holder.acquire();
  REQUIRE(token);
  database.admin().expire("job");
  CHECK(holder.acquire() == token);
  CHECK(holder.renew(*token) == store::Renewed::yes);
  CHECK(holder.release(*token));
}

TEST_CASE("an acquire repeated after somebody else took over is busy and changes nothing") {
  Database database;
  Sender holder(database), next(database, "ffffffffffffffffffffffffffffffff");
  const auto token = holder.acquire();
  database.admin().expire("job");
  const auto taken = next.acquire();
  REQUIRE(taken);
  CHECK(number(*taken) > number(token.value()));
  const auto before = database.admin().row("job");
  CHECK_FALSE(holder.acquire());
  CHECK(database.admin().row("job") == before);
  CHECK(next.release(*taken));
}

TEST_CASE("a repeated release frees once and changes nothing more") {
  Database database;
  Sender holder(database), next(database, "ffffffffffffffffffffffffffffffff");
  const auto token = holder.acquire();
  REQUIRE(token);
  CHECK(holder.release(*token));
  const auto freed = database.admin().row("job");
  CHECK_FALSE(holder.release(*token));
  CHECK(database.admin().row("job") == freed);
  const auto taken = next.acquire();
  REQUIRE(taken);
  const auto before = database.admin().row("job");
  CHECK_FALSE(holder.release(*token));
  CHECK(database.admin().row("job") == before);
  CHECK(next.release(*taken));
}

TEST_CASE("a repeated renewal renews the same lease and changes only its end") {
  Database database;
  Sender holder(database);
  const auto token = holder.acquire();
  REQUIRE(token);
  const auto begun = database.admin().acquired_at("job");
  for (int i = 0; i < 3; ++i) CHECK(holder.renew(*token) == store::Renewed::yes);
  CHECK(database.admin().token("job") == *token);
  CHECK(database.admin().acquired_at("job") == begun);
  CHECK(database.admin().expires_at("job") >= begun + 30s);
  CHECK(holder.release(*token));
}

TEST_CASE("a repeated extension is the same extension") {
  Database database;
  Sender holder(database);
  const auto token = holder.acquire();
  REQUIRE(token);
  for (int i = 0; i < 2; ++i)
    CHECK(holder.table->extend(holder.claim(*token), 90min, {}, Sender::soon()) == store::Renewed::yes);
  const auto length = database.admin().expires_at("job") - database.admin().acquired_at("job");
  CHECK(length >= 90min);
  CHECK(length < 120min);
  CHECK(holder.release(*token));
}

TEST_CASE("nothing that is sent again, or arrives late, makes a lease end earlier or changes what is told of it") {
  Database database;
  Sender holder(database);
  const auto token = holder.acquire(10s);
  REQUIRE(token);
  CHECK(holder.table->extend(holder.claim(*token), 1h, {}, Sender::soon()) == store::Renewed::yes);
  const auto told = [&] {
    const auto row = holder.table->inspect("job", Sender::soon());
    REQUIRE(row);
    return row->node + '/' + row->label + '/' + row->metadata + '/' + row->owner;
  };
  const auto before = told();
  auto end = database.admin().expires_at("job");
  const auto is_kept = [&] {
    const auto now = database.admin().expires_at("job");
    CHECK(now >= end);
    end = now;
    CHECK(told() == before);
  };
  const Name name("job");
  const std::string owner = "0123456789abcdef0123456789abcdef";
  const store::AcquireRequest other_words{name, owner, "a node", "a label", "an actor", 1s, 1h, "words"};
  CHECK(holder.table->acquire(other_words, Sender::soon()).token == token);
  is_kept();
  CHECK(database.admin().reopens_at("job") == Duration{});
  CHECK(holder.table->inspect("job", Sender::soon())->lease == 1h);
  CHECK(holder.renew(*token, 1s) == store::Renewed::yes);
  is_kept();
  CHECK(holder.table->extend(holder.claim(*token), 1s, {}, Sender::soon()) == store::Renewed::yes);
  is_kept();
  CHECK(holder.renew(*token, 30s) == store::Renewed::yes);
  is_kept();
  CHECK(holder.renew(*token, 2h) == store::Renewed::yes);
  CHECK(database.admin().expires_at("job") > end);
  CHECK(holder.release(*token));
}

TEST_CASE("many that are sent again together are answered as each alone: none ends earlier") {
  Database database;
  const auto table = open_table(database.url(), 1);
  constexpr int threads = 12;
  const auto ask = [&](int i, Duration lease, const char* words) {
    const Name name("job " + std::to_string(i));
    const auto owner = identity(i);
    const store::AcquireRequest one{name, owner, words, words, words, lease, {}, words};
    const auto granted = patiently([&] { return table->acquire(one, soon()); });
    REQUIRE(granted.token);
    return *granted.token;
  };
  std::vector<Token> tokens(threads);
  std::vector<std::string> rows(threads);
  in_parallel(threads, [&](int i) { tokens[static_cast<std::size_t>(i)] = ask(i, 1h, "first"); });
  for (int i = 0; i < threads; ++i)
    rows[static_cast<std::size_t>(i)] = database.admin().row("job " + std::to_string(i));
  for (int round = 0; round < 3; ++round) {
    in_parallel(threads, [&](int i) { CHECK(ask(i, 1s, "again") == tokens[static_cast<std::size_t>(i)]); });
    for (int i = 0; i < threads; ++i)
      CHECK(database.admin().row("job " + std::to_string(i)) == rows[static_cast<std::size_t>(i)]);
  }
  in_parallel(threads, [&](int i) {
    const auto name = "job " + std::to_string(i), owner = identity(i);
    const store::LeaseKey claim{name, owner, tokens[static_cast<std::size_t>(i)]};
    CHECK(patiently([&]() -> bool { return table->release(claim, soon()); }));
  });
}

TEST_CASE("a hand-over that is sent again takes nothing from the heir") {
  Database database;
  const auto table = database.table();
  Hand giver(*table, 1), heir(*table, 2);
  REQUIRE(giver.acquire());
  const auto token = giver.hand_over(heir);
  REQUIRE(token);
  const store::LeaseKey claim{"job", heir.owner(), *token, 5h};
  CHECK(table->extend(claim, 5h, {}, soon()) == store::Renewed::yes);
  const auto row = database.admin().row("job");
  CHECK(giver.hand_over(heir, 30min) == token);
  CHECK(database.admin().row("job") == row);
  CHECK(heir.release());
  CHECK_FALSE(giver.hand_over(heir));
  CHECK(database.admin().held() == 0);
}

TEST_CASE("renewals of different lengths travel together, and each lasts as long as it asked for") {
  Database database;
  const auto table = database.table();
  std::vector<std::string> names, owners;
  std::vector<Token> tokens;
  constexpr int count = 9;
  for (int i = 0; i < count; ++i) {
    names.push_back("job " + std::to_string(i));
    owners.push_back(identity(i));
    const Name name(names.back());
    const store::AcquireRequest ask{name, owners.back(), "node", "label", "actor", 1s, {}, ""};
    tokens.push_back(table->acquire(ask, soon()).token.value());
  }
  std::vector<store::LeaseKey> claims;
  for (std::size_t i = 0; i < count; ++i)
    claims.push_back({names[i], owners[i], i == 4 ? Token{77} : tokens[i], 1h * static_cast<int>(i % 3 + 1)});
  const auto outcomes = table->renew(claims, soon());
  for (std::size_t i = 0; i < count; ++i) {
    INFO(i);
    CHECK(outcomes.at(i) == (i == 4 ? store::Renewed::lost : store::Renewed::yes));
    const auto length = database.admin().expires_at(names[i]) - database.admin().acquired_at(names[i]);
    CHECK(length >= (i == 4 ? Duration{1s} : claims[i].lease));
    CHECK(length < (i == 4 ? Duration{1s} : claims[i].lease) + 30min);
    const store::LeaseKey claim{names[i], owners[i], tokens[i]};
    CHECK(table->release(claim, soon()));
  }
}

TEST_CASE("who has released is not granted the lock again under the same owner, until somebody else had it") {
  Database database;
  Sender holder(database), next(database, "ffffffffffffffffffffffffffffffff");
  const auto token = holder.acquire();
  REQUIRE(token);
  CHECK(holder.release(*token));
  const auto row = database.admin().row("job");
  CHECK_FALSE(holder.acquire());
  CHECK(database.admin().row("job") == row);
  const auto taken = next.acquire();
  REQUIRE(taken);
  CHECK(next.release(*taken));
  CHECK_FALSE(next.acquire());
}

TEST_CASE("nor is who was released by force, or with many others") {
  Database database;
  Sender holder(database);
  const auto token = holder.acquire();
  REQUIRE(token);
  CHECK(holder.table->force_release("job", *token, {}, Sender::soon()));
  CHECK_FALSE(holder.acquire());

  const auto table = open_table(database.url(), 1);
  in_parallel(12, [&](int i) {
    const Name name("job " + std::to_string(i));
    const auto owner = identity(i);
    const store::AcquireRequest ask{name, owner, "node", "label", "actor", 1h, {}, ""};
    const auto granted = patiently([&] { return table->acquire(ask, soon()); });
    REQUIRE(granted.token);
    const store::LeaseKey claim{name.text(), owner, *granted.token};
    CHECK(patiently([&]() -> bool { return table->release(claim, soon()); }));
    CHECK_FALSE(patiently([&] { return table->acquire(ask, soon()); }).token);
  });
  CHECK(database.admin().held() == 0);
}

TEST_CASE("a withdrawal of an ask whose answer was lost frees whatever it was granted, and refuses what comes later") {
  Database database;
  Sender holder(database), next(database, "ffffffffffffffffffffffffffffffff");
  const std::string owner = "0123456789abcdef0123456789abcdef";
  holder.table->withdraw("job", owner, Sender::soon());  // there is no row yet
  CHECK_FALSE(holder.acquire());
  const auto first = next.acquire();
  REQUIRE(first);
  const auto row = database.admin().row("job");
  holder.table->withdraw("job", owner, Sender::soon());  // it is somebody else's
  CHECK(database.admin().row("job") == row);
  CHECK(next.release(*first));
  REQUIRE(holder.acquire());
  holder.table->withdraw("job", owner, Sender::soon());
  CHECK(database.admin().held() == 0);
  CHECK_FALSE(holder.acquire());
  const auto token = database.admin().token("job");
  holder.table->withdraw("job", owner, Sender::soon());
  CHECK(database.admin().token("job") == token);
  Sender third(database, "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee");
  const auto granted = third.acquire();
  REQUIRE(granted);
  CHECK(*granted > token);
  CHECK(third.release(*granted));
}

TEST_CASE("a repeated forced release moves the token once") {
  Database database;
  Sender holder(database);
  const auto token = holder.acquire();
  REQUIRE(token);
  CHECK(holder.table->force_release("job", *token, {}, Sender::soon()));
  const auto moved = database.admin().row("job");
  CHECK_FALSE(holder.table->force_release("job", *token, {}, Sender::soon()));
  CHECK(database.admin().row("job") == moved);
}
