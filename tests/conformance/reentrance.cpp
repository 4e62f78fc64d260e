// The promise that a thread enters again what it holds, and that nobody else does.
#include "support/database.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"

#include <doctest/doctest.h>

#include <thread>

using namespace dlock;
using namespace dlock::test;
using namespace std::chrono_literals;

namespace {

// What `call` answers on a thread of its own.
template <class Call>
auto on_another_thread(Call call) {
  decltype(call()) answer{};
  std::thread([&] { answer = call(); }).join();
  return answer;
}

}  // namespace

TEST_CASE("a thread enters again what it holds: same token, same owner, nothing written, free when the last has left") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  auto outer = engine.try_lock("job", {.lease = 1h, .metadata = "of the grant"});
  REQUIRE(outer);
  const auto row = database.admin().row("job");
  auto inner = engine.try_lock("job", {.metadata = "of the entry"});
  auto innermost = engine.lock("job");
  REQUIRE(inner);
  CHECK(inner->token() == outer->token());
  CHECK(innermost.token() == outer->token());
  CHECK(inner->owner() == outer->owner());
  CHECK(database.admin().row("job") == row);
  CHECK(inner->release() == Released::still_held);
  CHECK(inner->release() == Released::still_held);  // answers the same again, and leaves once
  CHECK(outer->release() == Released::still_held);  // in any order
  CHECK(database.admin().row("job") == row);
  CHECK_FALSE(other.try_lock("job"));
  CHECK(innermost.valid());
  CHECK(innermost.release() == Released::freed);
  CHECK(other.try_lock("job"));
}

TEST_CASE("what one thread holds is busy for the others of its engine, and for its own other engine") {
  Database database;
  auto engine = database.engine();
  auto second = database.engine();
  const auto lock = engine.try_lock("job");
  REQUIRE(lock);
  CHECK(on_another_thread([&] { return !engine.try_lock("job"); }));
  CHECK_FALSE(second.try_lock("job"));
  CHECK_FALSE(engine.try_lock("job", {.reentrance = Reentrance::none}));
  CHECK_FALSE(engine.try_lock("job", {.reentrance = Reentrance::node}));
}

TEST_CASE("with reentrance none the same thread is busy too") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::none});
  const auto lock = engine.try_lock("job");
  REQUIRE(lock);
  CHECK_FALSE(engine.try_lock("job"));
  CHECK_FALSE(engine.try_lock("job", {.reentrance = Reentrance::thread}));  // the grant was for nobody to enter
}

TEST_CASE("a later thread never inherits what an earlier one holds, whatever its identity") {
  Database database;
  auto engine = database.engine();
  std::optional<Lock> kept;
  std::thread([&] { kept = engine.try_lock("job"); }).join();
  REQUIRE(kept);
  for (int i = 0; i < 20; ++i) CHECK(on_another_thread([&] { return !engine.try_lock("job"); }));
  CHECK(kept->release() == Released::freed);
}

TEST_CASE("a Lock moved to another thread stays the entry of the thread it was granted to") {
  Database database;
  auto engine = database.engine();
  auto lock = engine.try_lock("job");
  REQUIRE(lock);
  const auto token = lock->token();
  std::optional<Lock> moved;
  CHECK(on_another_thread([&] {
    moved = std::move(lock);
    return moved->valid() && !engine.try_lock("job");
  }));
  lock.reset();
  auto inner = engine.try_lock("job");
  REQUIRE(inner);
  CHECK(inner->token() == token);
  CHECK(on_another_thread([&] { return moved->release(); }) == Released::still_held);
  CHECK(inner->release() == Released::freed);
}

TEST_CASE("entries that come and go on two threads at once never free the row under one of them") {
  Database database;
  auto engine = database.engine({.reentrance = Reentrance::thread});
  for (int round = 0; round < 20; ++round) {
    auto outer = engine.try_lock("job");
    REQUIRE(outer);
    std::thread releaser([lock = std::move(*outer)]() mutable { lock.release(); });
    outer.reset();
    const auto inner = engine.try_lock("job");  // still in, or busy while the row is being freed, or a new grant
    if (inner) {
      CHECK(inner->valid());
      CHECK(database.admin().owner("job") == inner->owner());
    }
    releaser.join();
    if (inner) CHECK(database.admin().owner("job") == inner->owner());
  }
}

TEST_CASE(
    "a lost lease is not entered again: a new grant with a new token is asked for, and the old entries stay lost") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  auto outer = engine.try_lock("job", renewed_often());
  REQUIRE(outer);
  auto inner = engine.try_lock("job");
  REQUIRE(inner);
  CHECK(other.force_release("job", outer->token()));
  CHECK(eventually([&] { return !outer->valid(); }));
  auto next = engine.try_lock("job");
  REQUIRE(next);
  CHECK(number(next->token()) > number(outer->token()));
  CHECK(next->valid());
  CHECK_FALSE(inner->valid());
  CHECK_FALSE(outer->valid());
  CHECK(inner->release() == Released::was_lost);
  CHECK(outer->release() == Released::was_lost);
  auto again = engine.try_lock("job");
  REQUIRE(again);
  CHECK(again->token() == next->token());
  CHECK(again->release() == Released::still_held);
  CHECK(next->release() == Released::freed);
}

TEST_CASE("a loss that nobody noticed yet is found by the entry that refreshes the lease") {
  Database database;
  auto engine = database.engine();
  auto other = database.engine();
  auto outer = engine.try_lock("job", {.lease = 1h, .renew = false});
  REQUIRE(outer);
  CHECK(other.force_release("job", outer->token()));
  CHECK(outer->valid());
  auto next = engine.try_lock("job");
  REQUIRE(next);
  CHECK(number(next->token()) > number(outer->token()));
  CHECK((outer->loss() == Loss::forced || outer->loss() == Loss::refused));  // it knows why for a second
  CHECK(outer->release() == Released::was_lost);
  CHECK(next->release() == Released::freed);
}

TEST_CASE("without renewal each entry begins with a full lease") {
  Database database;
  auto engine = database.engine();
  auto outer = engine.try_lock("job", {.lease = 1h, .renew = false});
  REQUIRE(outer);
  const auto token = outer->token();
  for (int i = 0; i < 3; ++i) {
    const auto before = database.admin().expires_at("job");
    std::this_thread::sleep_for(5ms);  // longer than a step of any database's clock
    const auto inner = engine.try_lock("job", {.renew = false});
    REQUIRE(inner);
    CHECK(inner->token() == token);
    CHECK(database.admin().expires_at("job") > before);
  }
}

TEST_CASE(
    "an entry that asks for a longer lease gets it, and one that asks for a shorter one does not cut the grant's") {
  Database database;
  auto engine = database.engine();
  const auto outer = engine.try_lock("job", {.lease = 10min});
  REQUIRE(outer);
  const auto shorter = engine.try_lock("job", {.lease = 5min});
  CHECK(engine.inspect("job")->lease == 10min);
  const auto longer = engine.try_lock("job", {.lease = 60min});
  REQUIRE(longer);
  CHECK(engine.inspect("job")->lease == 60min);
  CHECK(outer->remaining() > 30min);
}

TEST_CASE("the options of the grant stand: an entry's label, metadata and at-least time change nothing") {
  Database database;
  auto engine = database.engine();
  const auto outer = engine.try_lock("job", {.lease = 1h, .label = "grant", .metadata = "grant"});
  REQUIRE(outer);
  const auto row = database.admin().row("job");
  const auto inner = engine.try_lock("job", {.at_least = 1h, .label = "entry", .metadata = "entry"});
  REQUIRE(inner);
  CHECK(database.admin().row("job") == row);
}

TEST_CASE("a detached lease is let go of by all of its entries, and none of them frees it") {
  Database database;
  auto engine = database.engine();
  auto outer = engine.try_lock("job");
  REQUIRE(outer);
  auto inner = engine.try_lock("job");
  REQUIRE(inner);
  const auto grant = inner->detach();
  CHECK_FALSE(outer->valid());
  CHECK(outer->release() == Released::unconfirmed);
  CHECK(database.admin().owner("job") == outer->owner());
  CHECK_FALSE(engine.try_lock("job"));
  auto adopted = engine.adopt("job", grant);
  REQUIRE(adopted);
  CHECK(adopted->release() == Released::freed);
}

TEST_CASE("the engine may go before the entries") {
  Database database;
  std::optional<Lock> outer, inner;
  {
    auto engine = database.engine();
    outer = engine.try_lock("job");
    inner = engine.try_lock("job");
  }
  REQUIRE(inner);
  CHECK(outer->release() == Released::still_held);
  CHECK(inner->valid());
  CHECK(inner->release() == Released::freed);
}

TEST_CASE("who is told of events hears of one grant and one release") {
  Database database;
  EventLog news;
  {
    auto engine = database.engine({.observer = news.observer()});
    const auto outer = engine.try_lock("job");
    const auto inner = engine.try_lock("job");
    CHECK(inner);
  }
  REQUIRE(news.comes(Event::Kind::released));
  CHECK(news.of(Event::Kind::granted).size() == 1);
  CHECK(news.of(Event::Kind::released).size() == 1);
}
