// This file knows the promise that a statement whose answer was lost can be sent again and changes nothing more.
#include "support/database.hpp"

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
    const store::Ask ask{name_, owner_, "node", "label", "fedcba9876543210fedcba9876543210", lease, at_least, ""};
    return table->acquire({&ask, 1}, soon()).front().token;
  }
  store::Claim claim(Token token) const { return {name_.text(), owner_, token}; }
  bool release(Token token) {
    const auto one = claim(token);
    return table->release({&one, 1}, soon()).front();
  }
  store::Renewed renew(Token token) {
    const auto one = claim(token);
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
  for (int i = 0; i < 2; ++i) CHECK(holder.table->extend(holder.claim(*token), 90min, Sender::soon()));
  const auto length = database.admin().expires_at("job") - database.admin().acquired_at("job");
  CHECK(length >= 90min);
  CHECK(length < 120min);
  CHECK(holder.release(*token));
}

TEST_CASE("a withdrawal of an ask whose answer was lost frees whatever it was granted, once") {
  Database database;
  Sender holder(database);
  CHECK_FALSE(holder.table->withdraw("job", "0123456789abcdef0123456789abcdef", Sender::soon()));
  REQUIRE(holder.acquire());
  CHECK(holder.table->withdraw("job", "0123456789abcdef0123456789abcdef", Sender::soon()));
  CHECK_FALSE(holder.table->withdraw("job", "0123456789abcdef0123456789abcdef", Sender::soon()));
  CHECK(database.admin().held() == 0);
}

TEST_CASE("a repeated forced release moves the token once") {
  Database database;
  Sender holder(database);
  const auto token = holder.acquire();
  REQUIRE(token);
  CHECK(holder.table->force_release("job", *token, Sender::soon()));
  const auto moved = database.admin().row("job");
  CHECK_FALSE(holder.table->force_release("job", *token, Sender::soon()));
  CHECK(database.admin().row("job") == moved);
}
