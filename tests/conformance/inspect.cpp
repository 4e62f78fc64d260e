// The promise that one can ask who holds a lock, since when and for how long.
#include "support/database.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

std::vector<std::string> names(const std::vector<Holder>& rows) {
  std::vector<std::string> all;
  for (const auto& row : rows) all.push_back(row.name);
  return all;
}

}  // namespace

TEST_CASE("a busy answer tells, on request, who holds the lock, since when and for how long") {
  Database database;
  auto holder = database.engine({.node = "replica-1", .label = "the holder"});
  auto engine = database.engine();
  const auto lock = holder.try_lock("job", {.lease = 60min, .renew = false, .metadata = "why"});
  REQUIRE(lock);
  database.admin().age("job", 20min);
  Refusal refusal;
  // Where the row could not be read within a second it is the name alone.
  CHECK(eventually([&] { return !engine.try_lock("job", {}, &refusal) && !refusal.holder.owner.empty(); }));
  CHECK(refusal.why == Refused::busy);
  const auto& who = refusal.holder;
  CHECK(who.name == "job");
  CHECK(who.state == State::held);
  CHECK(who.node == "replica-1");
  CHECK(who.label == "the holder");
  CHECK(who.metadata == "why");
  CHECK(who.owner == lock->owner());
  CHECK(who.token == lock->token());
  CHECK(who.entries == 1);
  CHECK(who.lease == 60min);
  CHECK(who.held >= 20min);
  CHECK(who.held < 30min);
  CHECK(who.left <= 40min);
  CHECK(who.left > 30min);
}

TEST_CASE("a row says whether it is free, held, closed or expired") {
  Database database;
  auto engine = database.engine();
  CHECK_FALSE(engine.inspect("never asked for"));
  engine.try_lock("free").reset();
  engine.try_lock("closed", {.at_least = 1h}).reset();
  const auto held = engine.try_lock("held");
  auto expired = engine.try_lock("expired", {.renew = false});
  REQUIRE(held);
  REQUIRE(expired);
  database.admin().age("expired", 1h);
  CHECK(engine.inspect("free")->state == State::free);
  CHECK(engine.inspect("closed")->state == State::closed);
  CHECK(engine.inspect("closed")->left > 59min);
  CHECK(engine.inspect("held")->state == State::held);
  CHECK(engine.inspect("expired")->state == State::expired);
  CHECK(engine.inspect("expired")->left < -59min);
  CHECK(engine.inspect("free")->entries == 0);
}

TEST_CASE("a list has every row but the floor, ordered by name, and a pattern chooses among them") {
  Database database;
  auto engine = database.engine();
  CHECK(engine.list().empty());
  for (const char* name : {"order/2", "order/1", "order/10", "report", "rep", "x*y", "xay"})
    engine.try_lock(name).reset();
  using All = std::vector<std::string>;
  CHECK(names(engine.list()) == All{"order/1", "order/10", "order/2", "rep", "report", "x*y", "xay"});
  CHECK(names(engine.list("order/*")) == All{"order/1", "order/10", "order/2"});
  CHECK(names(engine.list("order/?")) == All{"order/1", "order/2"});
  CHECK(names(engine.list("*[0-9]")) == All{"order/1", "order/10", "order/2"});
  CHECK(names(engine.list("rep")) == All{"rep"});
  CHECK(names(engine.list("x\\*y")) == All{"x*y"});
  CHECK(names(engine.list("x*y")) == All{"x*y", "xay"});
  CHECK(engine.list("%").empty());
  CHECK(engine.list("").empty());
}

TEST_CASE("owners are random and differ from grant to grant") {
  Database database;
  auto engine = database.engine();
  std::vector<std::string> owners;
  for (int i = 0; i < 5; ++i) owners.push_back(engine.try_lock("job")->owner());
  std::sort(owners.begin(), owners.end());
  CHECK(std::adjacent_find(owners.begin(), owners.end()) == owners.end());
  for (const auto& owner : owners) {
    CHECK(owner.size() == 32);
    CHECK(owner.find_first_not_of("0123456789abcdef") == std::string::npos);
  }
}
