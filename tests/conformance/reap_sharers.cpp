// Of each who died while it shared a name the reaper tells, once, whoever came in before it came by; and of
// nobody else.
#include "support/event_log.hpp"
#include "support/hands.hpp"
#include "support/readers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <string>
#include <vector>

using namespace dlock;
using namespace dlock::test;
using namespace dlock::test::readers;
using namespace std::chrono_literals;

namespace {

LockOptions held_as(Mode mode) {
  LockOptions options{.mode = mode, .lease = 1h, .renew = false};
  if (mode == Mode::permits) options.limit = 3;
  return options;
}

// Whose lease is over since a moment ago, and who is never heard of again.
void dies(Engine& engine, Database& database, Mode mode = Mode::shared) {
  auto lock = engine.lock("a", held_as(mode));
  expire_one(database, lock);
  static_cast<void>(lock.detach());
}

// The holders that rounds of so many told of, by their labels.
std::vector<std::string> told_of(Database& database, std::size_t batch = 1000) {
  EventLog news;
  {
    auto reaper = database.engine({.observer = news.observer()});
    for (std::size_t more = 1; more > 0;) {
      more = reaper.reap(batch).abandoned;
      CHECK(more <= batch);
    }
    CHECK(reaper.reap_all().abandoned == 0);
  }
  std::vector<std::string> labels;
  for (const auto& told : news.of(Event::Kind::abandoned)) {
    CHECK(told.name == "a");
    CHECK(told.token > Token{});
    for (const std::string label : {"one", "two", "three"})
      if (told.text.find("held by " + label + " (") != std::string::npos) labels.push_back(label);
  }
  CHECK(labels.size() == news.of(Event::Kind::abandoned).size());
  std::ranges::sort(labels);
  return labels;
}

using Labels = std::vector<std::string>;

}  // namespace

TEST_CASE("all who died are told of, although others share the name by now: at once, or one in a round") {
  for (const auto mode : {Mode::shared, Mode::permits})
    for (const std::size_t batch : {1, 1000}) {
      INFO(to_string(mode) << ", " << batch);
      Database database;
      auto one = database.engine({.reentrance = Reentrance::none, .label = "one"});
      auto two = database.engine({.reentrance = Reentrance::none, .label = "two"});
      auto other = apart(database);
      for (auto* each : {&one, &two}) each->lock("a", held_as(mode)).detach();
      database.admin().expire("a");
      auto next = other.lock("a", held_as(mode));
      CHECK(holders(database) == 3);
      CHECK(other.sharers("a").size() == 1);
      CHECK(told_of(database, batch) == Labels{"one", "two"});
      CHECK(holders(database) == 1);
      next.extend(1h);
      CHECK(next.release() == Released::freed);
    }
}

TEST_CASE("who died beside one who let go is told of, whoever has had the name since") {
  for (const bool downgrades : {false, true}) {
    INFO(downgrades);
    Database database;
    auto one = database.engine({.reentrance = Reentrance::none, .label = "one"});
    auto other = apart(database);
    auto lives = other.lock("a", held_as(Mode::shared));
    dies(one, database);
    CHECK(lives.release() == Released::freed);
    auto next = other.lock("a", {.lease = 1h, .renew = false});
    if (downgrades) {
      next.downgrade();
    } else {
      CHECK(next.release() == Released::freed);
      next = other.lock("a", held_as(Mode::shared));
    }
    CHECK(told_of(database) == Labels{"one"});
    next.extend(1h);
    CHECK(next.release() == Released::freed);
    CHECK(holders(database) == 0);
  }
}

TEST_CASE("whose permit was counted out is told of, also where the one who counted came in vain") {
  Database database;
  auto one = database.engine({.reentrance = Reentrance::none, .label = "one"});
  auto other = apart(database);
  auto lives = other.lock("a", held_as(Mode::permits));
  dies(one, database, Mode::permits);
  auto all = held_as(Mode::permits);
  all.permits = 3;
  CHECK_FALSE(other.try_lock("a", all));
  CHECK(told_of(database) == Labels{"one"});
  lives.extend(1h);
  CHECK(lives.release() == Released::freed);
}

TEST_CASE("who lived when the name was freed by force is not told of as dead, and who had died before is") {
  for (const bool somebody_comes : {false, true}) {
    INFO(somebody_comes);
    Database database;
    auto two = database.engine({.reentrance = Reentrance::none, .label = "two"});
    auto one = apart(database), other = apart(database);
    auto forced = one.lock("a", held_as(Mode::shared));
    dies(two, database);
    REQUIRE(other.force_release("a", other.inspect("a")->token));
    CHECK(holders(database) == 1);
    if (somebody_comes) CHECK(other.lock("a", held_as(Mode::shared)).release() == Released::freed);
    CHECK(told_of(database) == Labels{"two"});
    CHECK(forced.release() == Released::was_lost);
  }
}

TEST_CASE("who gives back late what it had is not told of as dead") {
  Database database;
  auto one = apart(database), other = apart(database);
  auto late = other.lock("a", held_as(Mode::shared));
  database.admin().expire("a");
  auto next = one.lock("a", held_as(Mode::shared));
  CHECK(holders(database) == 2);
  CHECK(late.release() == Released::was_lost);
  CHECK(holders(database) == 1);
  CHECK(told_of(database).empty());
  CHECK(next.release() == Released::freed);
}

TEST_CASE("who hands in late what it had is not told of as dead") {
  Database database;
  auto one = apart(database), other = apart(database);
  auto late = other.lock("a", held_as(Mode::shared));
  database.admin().expire("a");
  auto next = one.lock("a", held_as(Mode::shared));
  CHECK(holders(database) == 2);
  const auto grant = late.detach();
  CHECK_FALSE(one.adopt("a", {grant.token, next.owner()}));  // nobody's
  CHECK(holders(database) == 2);
  CHECK_FALSE(one.adopt("a", grant));
  CHECK(holders(database) == 1);
  CHECK(told_of(database).empty());
  CHECK(next.release() == Released::freed);
}

TEST_CASE("who asks in vain in another way takes nothing from those who are late") {
  Database database;
  auto one = apart(database), other = apart(database);
  auto late = one.lock("a", held_as(Mode::shared));
  auto lives = other.lock("a", held_as(Mode::shared));
  expire_one(database, late);
  CHECK_FALSE(other.try_lock("a", held_as(Mode::permits)));
  CHECK(other.renew("a", late.detach()));
  CHECK(told_of(database).empty());
  CHECK(lives.release() == Released::freed);
  free_by_force(other, "a");
}

TEST_CASE("who has lost its part, and asks again, is let in, and is not told of as dead") {
  for (const auto mode : {Mode::shared, Mode::permits}) {
    INFO(to_string(mode));
    Database database;
    auto engine = apart(database), other = apart(database);
    const auto table = database.table();
    // As an attempt whose answer was lost is sent again, by the same owner.
    const Name name("a");
    const auto owner = identity(7);
    const store::AcquireRequest ask{name, owner, "node", "label", owner, 1h, {}, {}, 0, mode, 1, 3};
    const auto soon = [] { return later(BootClock::now(), 1min); };
    const auto first = table->acquire(ask, soon());
    REQUIRE(first.token);
    database.admin().expire("a");
    auto next = other.lock("a", held_as(mode));
    CHECK(holders(database) == 2);
    const auto second = table->acquire(ask, soon());
    REQUIRE(second.token);
    CHECK(*second.token > next.token());
    CHECK(table->acquire(ask, soon()).token == second.token);
    CHECK(holders(database) == 2);
    CHECK(told_of(database).empty());
    CHECK(next.release() == Released::freed);
    CHECK(table->release({name.text(), owner, *second.token, 1h, mode}, soon()));
  }
}

TEST_CASE(
    "where nobody reaps, who comes in clears away who has been seen dead for a day, and of very many all but some") {
  Database database;
  auto one = database.engine({.reentrance = Reentrance::none, .label = "one"});
  auto other = apart(database);
  const auto somebody_comes = [&] { CHECK(other.lock("a", held_as(Mode::shared)).release() == Released::freed); };
  dies(one, database);
  // However long ago its lease was over: nobody could have told of it since.
  database.admin().age("a", 100h);
  somebody_comes();
  CHECK(holders(database) == 1);
  database.admin().run("UPDATE resource_lock_holder SET acquired_at = acquired_at - 86400000000");
  somebody_comes();
  CHECK(holders(database) == 0);
  for (int number = 1; number <= 110; ++number)
    database.admin().run(
        "INSERT INTO resource_lock_holder (name, owner, gate, token, mode, acquired_at, expires_at) SELECT name, '" +
        identity(number) + "', '-', -1, 'shared', acquired_at + " + std::to_string(number) +
        ", 1 FROM resource_lock WHERE name = 'a'");
  somebody_comes();
  CHECK(holders(database) == 100);
  CHECK(database.admin().number("SELECT count(*) FROM resource_lock_holder WHERE owner > '" + identity(10) + "'") ==
        100);
}

TEST_CASE("of very many who died at once each is told of, although others share the name by now") {
  Database database;
  auto engine = apart(database);
  static_cast<void>(engine.lock("a", held_as(Mode::shared)).detach());
  database.admin().run("UPDATE resource_lock SET token = 1000 WHERE name = 'a'");
  for (int number = 1; number <= 150; ++number)
    database.admin().run(
        "INSERT INTO resource_lock_holder (name, owner, gate, node, token, mode, acquired_at, expires_at) SELECT name, "
        "'" +
        identity(number) + "', owner, 'node', token - " + std::to_string(number) +
        ", mode, acquired_at, expires_at FROM resource_lock WHERE name = 'a'");
  database.admin().expire("a");
  const auto next = engine.lock("a", held_as(Mode::shared));
  CHECK(holders(database) == 152);
  CHECK(engine.reap().abandoned == 151);
}

TEST_CASE("who waited while a name was freed by force has it, and who lived then is not told of as dead") {
  Database database;
  auto one = apart(database), other = apart(database);
  auto forced = one.lock("a", held_as(Mode::shared));
  auto waiting = std::async(std::launch::async, [&] {
    return answered([&] { return other.try_lock_for("a", far_longer(), {.lease = 1h, .renew = false}); });
  });
  CHECK(eventually([&] { return !other.waiters("a").empty(); }));
  REQUIRE(other.force_release("a", forced.token()));
  auto next = waiting.get();
  REQUIRE(next);
  CHECK(holders(database) == 0);
  CHECK(next->release() == Released::freed);
  CHECK(told_of(database).empty());
  CHECK(forced.release() == Released::was_lost);
}
